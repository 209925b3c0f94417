#include "harbour.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// The first and only thing that a peer sends before it is let in.
struct Hello {
  std::array<std::uint8_t, 16> secret{};
  std::int32_t number = 0;
};
constexpr char welcome = 'w';

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

template <typename F>
void with_socket_address(const Address& address, int port, F&& use) {
  if (address.family == AF_INET) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&place.sin_addr, address.bytes.data(), sizeof place.sin_addr);
    use(reinterpret_cast<const sockaddr*>(&place), socklen_t{sizeof place});
  } else {
    sockaddr_in6 place{};
    place.sin6_family = AF_INET6;
    place.sin6_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&place.sin6_addr, address.bytes.data(), sizeof place.sin6_addr);
    use(reinterpret_cast<const sockaddr*>(&place), socklen_t{sizeof place});
  }
}

/// Addresses of interfaces that are up, but for the loopback and links' own.
std::vector<Address> own_addresses() {
  std::vector<Address> found;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const auto* one = all; one != nullptr; one = one->ifa_next) {
    const bool usable = one->ifa_addr != nullptr && (one->ifa_flags & IFF_UP) != 0 &&
                        (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable) continue;
    Address address;
    address.family = one->ifa_addr->sa_family;
    if (address.family == AF_INET) {
      const auto* place = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
      std::memcpy(address.bytes.data(), &place->sin_addr, sizeof place->sin_addr);
    } else if (address.family == AF_INET6) {
      const auto* place = reinterpret_cast<const sockaddr_in6*>(one->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&place->sin6_addr)) continue;
      std::memcpy(address.bytes.data(), &place->sin6_addr, sizeof place->sin6_addr);
    } else {
      continue;
    }
    found.push_back(address);
  }
  ::freeifaddrs(all);
  return found;
}

/// Bound to any port of any interface; its port in `port`.
base::File listening_socket(int family, std::int32_t& port) {
  auto socket = base::File::adopt(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (family == AF_INET6) {
    // IPv4 too.
    const int off = 0;
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  bool bound = false;
  with_socket_address({family, {}}, 0, [&](const sockaddr* place, socklen_t size) {
    bound = ::bind(socket.get(), place, size) == 0 && ::listen(socket.get(), SOMAXCONN) == 0;
  });
  sockaddr_storage place{};
  socklen_t size = sizeof place;
  if (!bound || ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0) {
    return {};
  }
  // Both families keep the port in the same place.
  port = ntohs(reinterpret_cast<const sockaddr_in*>(&place)->sin_port);
  return socket;
}

bool is_welcome(int socket, Clock::time_point until) {
  pollfd waiting{socket, POLLIN, 0};
  char answer = 0;
  return ::poll(&waiting, 1, left_ms(until)) == 1 && ::recv(socket, &answer, 1, 0) == 1 &&
         answer == welcome;
}

}  // namespace

Harbour::Harbour() {
  std::int32_t port = 0;
  listening_ = listening_socket(AF_INET6, port);
  if (!listening_) listening_ = listening_socket(AF_INET, port);
  const auto bytes = ::getrandom(berth_.secret.data(), berth_.secret.size(), 0);
  if (!listening_ || bytes != static_cast<ssize_t>(berth_.secret.size())) return;
  const auto addresses = own_addresses();
  const auto count = std::min(addresses.size(), Berth::most_addresses);
  std::copy_n(addresses.begin(), count, berth_.addresses.begin());
  berth_.address_count = static_cast<std::int32_t>(count);
  berth_.port = port;
}

std::vector<Harbour::Arrival> Harbour::await(std::size_t count, milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Arrival> arrived;
  std::vector<base::File> strangers;
  while (arrived.size() < count && left_ms(until) > 0) {
    std::vector<pollfd> waiting{{listening_.get(), POLLIN, 0}};
    for (const auto& stranger : strangers) waiting.push_back({stranger.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), left_ms(until)) <= 0) continue;
    for (std::size_t i = strangers.size(); i > 0; --i) {
      if (waiting[i].revents == 0) continue;
      auto stranger = std::move(strangers[i - 1]);
      strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      Hello hello;
      // So few bytes come in one piece, or from somebody else.
      const bool known = ::recv(stranger.get(), &hello, sizeof hello, 0) == ssize_t{sizeof hello} &&
                         hello.secret == berth_.secret;
      if (known && ::send(stranger.get(), &welcome, 1, MSG_NOSIGNAL) == 1) {
        arrived.push_back({std::move(stranger), hello.number});
      }
    }
    if (waiting[0].revents == 0 || strangers.size() > 2 * count + 16) continue;
    auto stranger = base::File::adopt(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (stranger) strangers.push_back(std::move(stranger));
  }
  return arrived;
}

base::File sail_to(const Berth& berth, std::int32_t number, milliseconds patience) {
  const auto until = Clock::now() + patience;
  // All at once: an address of a network that does not reach this far answers late or never.
  std::vector<base::File> ships;
  for (std::int32_t i = 0; i < berth.address_count; ++i) {
    const auto& address = berth.addresses[static_cast<std::size_t>(i)];
    auto ship =
        base::File::adopt(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!ship) continue;
    with_socket_address(address, berth.port, [&](const sockaddr* place, socklen_t size) {
      if (::connect(ship.get(), place, size) == 0 || errno == EINPROGRESS) {
        ships.push_back(std::move(ship));
      }
    });
  }
  while (!ships.empty() && left_ms(until) > 0) {
    std::vector<pollfd> waiting;
    for (const auto& ship : ships) waiting.push_back({ship.get(), POLLOUT, 0});
    if (::poll(waiting.data(), waiting.size(), left_ms(until)) <= 0) continue;
    for (std::size_t i = ships.size(); i > 0; --i) {
      if (waiting[i - 1].revents == 0) continue;
      auto ship = std::move(ships[i - 1]);
      ships.erase(ships.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      const Hello hello{berth.secret, number};
      const bool sent =
          ::send(ship.get(), &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t{sizeof hello};
      // Another process may listen at that address: only a peer says welcome.
      if (sent && is_welcome(ship.get(), until)) return ship;
    }
  }
  return {};
}

}  // namespace trireme::comm
