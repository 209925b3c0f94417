#include "sockets.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "comm/tcp_liveness.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace trireme::comm::nccl_net {
namespace {

constexpr char goodbye = 'B';

[[noreturn]] void fail(const std::string& doing, int error) {
  base::throw_errno(base::ExitCode::peer, doing, error);
}

socklen_t size_of(const SocketAddress& address) {
  return address.any.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

base::File open_socket(int family) {
  const int raw = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (raw < 0) fail("cannot make a socket", errno);
  return base::File::adopt(raw);
}

SocketAddress address_of(const sockaddr* address) {
  SocketAddress copy{};
  if (address->sa_family == AF_INET6) {
    std::memcpy(&copy.v6, address, sizeof(copy.v6));
  } else {
    std::memcpy(&copy.v4, address, sizeof(copy.v4));
  }
  return copy;
}

}  // namespace

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool v6 = address.any.sa_family == AF_INET6;
  const void* host = v6 ? static_cast<const void*>(&address.v6.sin6_addr) : &address.v4.sin_addr;
  if (::inet_ntop(address.any.sa_family, host, text.data(), text.size()) == nullptr) return "?";
  const int port = ntohs(v6 ? address.v6.sin6_port : address.v4.sin_port);
  if (v6) return base::format("[{}]:{}", text.data(), port);
  return base::format("{}:{}", text.data(), port);
}

std::vector<Interface> find_interfaces() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) fail("cannot list network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, ::freeifaddrs);
  std::vector<Interface> found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const auto* each = list.get(); each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != family) continue;
      constexpr unsigned wanted = IFF_UP | IFF_RUNNING;
      if ((each->ifa_flags & wanted) != wanted || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
      const auto same = [&](const Interface& other) { return other.name == each->ifa_name; };
      if (std::any_of(found.begin(), found.end(), same)) continue;
      found.push_back({each->ifa_name, address_of(each->ifa_addr)});
    }
  }
  return found;
}

base::File listen_at(SocketAddress& address) {
  auto socket = open_socket(address.any.sa_family);
  (address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port) = 0;
  if (::bind(socket.get(), &address.any, size_of(address)) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    fail("cannot listen at " + text_of(address), errno);
  }
  socklen_t size = sizeof(address);
  if (::getsockname(socket.get(), &address.any, &size) != 0) fail("cannot name a socket", errno);
  return socket;
}

base::File accept_one(const base::File& listener) {
  const int raw = ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (raw >= 0) return base::File::adopt(raw);
  // A caller that hung up before it was answered is nobody.
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return {};
  fail("cannot accept a connection", errno);
}

base::File begin_connect(const SocketAddress& address) {
  auto socket = open_socket(address.any.sa_family);
  if (::connect(socket.get(), &address.any, size_of(address)) != 0 && errno != EINPROGRESS) {
    fail("cannot connect to " + text_of(address), errno);
  }
  return socket;
}

void watch_peer(const base::File& socket) {
  if (!watch_tcp_peer(socket.get())) fail("cannot set up a socket", errno);
}

Transfer Transfer::sending(std::vector<std::byte> bytes) {
  Transfer transfer;
  transfer.sends_ = true;
  transfer.bytes_ = std::move(bytes);
  return transfer;
}

Transfer Transfer::receiving(std::size_t size) {
  Transfer transfer;
  transfer.bytes_.resize(size);
  return transfer;
}

Progress Transfer::advance(const base::File& socket) {
  while (moved_ < bytes_.size()) {
    auto* place = bytes_.data() + moved_;
    const auto left = bytes_.size() - moved_;
    const auto count = sends_ ? ::send(socket.get(), place, left, MSG_NOSIGNAL)
                              : ::recv(socket.get(), place, left, 0);
    if (count > 0) {
      moved_ += static_cast<std::size_t>(count);
    } else if (count == 0) {
      fail("the peer hung up", ECONNRESET);
    } else if (errno == EAGAIN || errno == ENOTCONN) {
      return Progress::pending;
    } else if (errno != EINTR) {
      fail("the connection to the peer failed", errno);
    }
  }
  return Progress::done;
}

PeerState look_at_peer(const base::File& socket) {
  char said = 0;
  const auto count = ::recv(socket.get(), &said, 1, MSG_DONTWAIT);
  if (count == 1) return said == goodbye ? PeerState::said_goodbye : PeerState::gone;
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return PeerState::alive;
  return PeerState::gone;
}

void say_goodbye(const base::File& socket) {
  // To a peer that is gone there is nothing to say.
  static_cast<void>(::send(socket.get(), &goodbye, 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace trireme::comm::nccl_net
