#include "harbour.hpp"

#include "tcp_liveness.hpp"

#include <arpa/inet.h>
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

/// Bound to any free port of that address; its number in `port`.
base::File listening_socket(const Address& address, std::int32_t& port) {
  auto socket =
      base::File::adopt(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  bool bound = false;
  with_socket_address(address, 0, [&](const sockaddr* place, socklen_t size) {
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

/// A connection under way to one quay.
struct Ship {
  enum class Stage {
    connecting,
    greeting,  ///< it has said hello
    let_in,
    sunk
  };
  base::File socket;
  Stage stage = Stage::connecting;

  /// What the socket has become ready for. Never blocks.
  void advance(const Hello& hello) {
    if (stage == Stage::connecting) {
      const bool sent =
          ::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) == ssize_t{sizeof hello};
      stage = sent ? Stage::greeting : Stage::sunk;
      return;
    }
    // Another process may listen at that address: only a peer says welcome.
    char answer = 0;
    const bool heard = ::recv(socket.get(), &answer, 1, 0) == 1;
    stage = heard && answer == welcome ? Stage::let_in : Stage::sunk;
  }
};

/// Without it the end of a peer's system is noticed late, and nothing else is lost.
void watch(const base::File& socket) {
  [[maybe_unused]] const bool watched = watch_tcp_peer(socket.get());
}

/// Connections to all quays at once: an address of a network that does not reach this far answers
/// late or never.
std::vector<Ship> set_sail(const Berth& berth) {
  std::vector<Ship> ships;
  for (std::int32_t i = 0; i < berth.quay_count; ++i) {
    const auto& [address, port] = berth.quays[static_cast<std::size_t>(i)];
    auto socket =
        base::File::adopt(::socket(address.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) continue;
    watch(socket);
    with_socket_address(address, port, [&](const sockaddr* place, socklen_t size) {
      if (::connect(socket.get(), place, size) == 0 || errno == EINPROGRESS) {
        ships.push_back({std::move(socket)});
      }
    });
  }
  return ships;
}

}  // namespace

Harbour::Harbour(const std::vector<Address>& addresses) {
  const auto bytes = ::getrandom(berth_.secret.data(), berth_.secret.size(), 0);
  if (bytes != static_cast<ssize_t>(berth_.secret.size())) return;
  for (const auto& address : addresses) {
    if (listening_.size() == berth_.quays.size()) break;
    std::int32_t port = 0;
    auto socket = listening_socket(address, port);
    if (!socket) continue;
    berth_.quays[listening_.size()] = {address, port};
    listening_.push_back(std::move(socket));
  }
  berth_.quay_count = static_cast<std::int32_t>(listening_.size());
}

std::vector<Harbour::Arrival> Harbour::await(std::size_t count, milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Arrival> arrived;
  std::vector<base::File> strangers;
  while (arrived.size() < count && left_ms(until) > 0) {
    std::vector<pollfd> waiting;
    for (const auto& stranger : strangers) waiting.push_back({stranger.get(), POLLIN, 0});
    for (const auto& socket : listening_) waiting.push_back({socket.get(), POLLIN, 0});
    if (::poll(waiting.data(), waiting.size(), left_ms(until)) <= 0) continue;
    const auto before = strangers.size();
    for (std::size_t i = before; i > 0; --i) {
      if (waiting[i - 1].revents == 0) continue;
      auto stranger = std::move(strangers[i - 1]);
      strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i) - 1);
      Hello hello;
      // So few bytes come in one piece, or from somebody else.
      const bool known = ::recv(stranger.get(), &hello, sizeof hello, 0) == ssize_t{sizeof hello} &&
                         hello.secret == berth_.secret;
      if (known && ::send(stranger.get(), &welcome, 1, MSG_NOSIGNAL) == 1) {
        watch(stranger);
        arrived.push_back({std::move(stranger), hello.number});
      }
    }
    for (std::size_t i = 0; i < listening_.size(); ++i) {
      if (waiting[before + i].revents == 0 || strangers.size() > 2 * count + 16) continue;
      auto stranger = base::File::adopt(
          ::accept4(listening_[i].get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (stranger) strangers.push_back(std::move(stranger));
    }
  }
  return arrived;
}

base::File sail_to(const Berth& berth, std::int32_t number, milliseconds patience) {
  const auto until = Clock::now() + patience;
  const Hello hello{berth.secret, number};
  auto ships = set_sail(berth);
  while (!ships.empty() && left_ms(until) > 0) {
    std::vector<pollfd> waiting;
    for (const auto& ship : ships) {
      const short event = ship.stage == Ship::Stage::connecting ? POLLOUT : POLLIN;
      waiting.push_back({ship.socket.get(), event, 0});
    }
    if (::poll(waiting.data(), waiting.size(), left_ms(until)) <= 0) continue;
    for (std::size_t i = 0; i < ships.size(); ++i) {
      if (waiting[i].revents != 0) ships[i].advance(hello);
      if (ships[i].stage == Ship::Stage::let_in) return std::move(ships[i].socket);
    }
    std::erase_if(ships, [](const Ship& ship) { return ship.stage == Ship::Stage::sunk; });
  }
  return {};
}

}  // namespace trireme::comm
