// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/tcp.hpp"

#include "trireme/base/format.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>

namespace trireme::base::tcp {
namespace {

Failure failed(const std::string& doing, int error) {
  return {ExitCode::peer, format("{}: {}", doing, std::strerror(error))};
}

bool is_v6(const SocketAddress& address) {
  return address.any.sa_family == AF_INET6;
}

Result<File> open_socket(int family) {
  const int raw = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (raw < 0) return failed("cannot make a socket", errno);
  return File::adopt(raw);
}

SocketAddress address_of(const sockaddr* raw) {
  SocketAddress address{};
  if (raw->sa_family == AF_INET6) {
    std::memcpy(&address.v6, raw, sizeof address.v6);
  } else {
    std::memcpy(&address.v4, raw, sizeof address.v4);
  }
  return address;
}

int prefix_of(const sockaddr* netmask) {
  if (netmask == nullptr) return 0;
  int bits = 0;
  const auto mask = address_of(netmask);
  const auto count = [&](const auto& address) {
    std::array<std::uint8_t, sizeof address> bytes{};
    std::memcpy(bytes.data(), &address, sizeof address);
    for (const auto byte : bytes) bits += std::popcount(byte);
  };
  is_v6(mask) ? count(mask.v6.sin6_addr) : count(mask.v4.sin_addr);
  return bits;
}

}  // namespace

std::string text_of(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* host =
      is_v6(address) ? static_cast<const void*>(&address.v6.sin6_addr) : &address.v4.sin_addr;
  if (::inet_ntop(address.any.sa_family, host, text.data(), text.size()) == nullptr) return "?";
  return is_v6(address) ? format("[{}]:{}", text.data(), port_of(address))
                        : format("{}:{}", text.data(), port_of(address));
}

socklen_t size_of(const SocketAddress& address) {
  return is_v6(address) ? sizeof address.v6 : sizeof address.v4;
}

std::uint16_t port_of(const SocketAddress& address) {
  return ntohs(is_v6(address) ? address.v6.sin6_port : address.v4.sin_port);
}

void set_port(SocketAddress& address, std::uint16_t port) {
  (is_v6(address) ? address.v6.sin6_port : address.v4.sin_port) = htons(port);
}

Result<std::vector<InterfaceAddress>> interface_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return failed("cannot list network interfaces", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, ::freeifaddrs);
  std::vector<InterfaceAddress> found;
  for (const auto* each = list.get(); each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 ||
        (each->ifa_flags & IFF_LOOPBACK) != 0) {
      continue;
    }
    const int family = each->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    found.push_back({each->ifa_name, address_of(each->ifa_addr), prefix_of(each->ifa_netmask),
                     (each->ifa_flags & IFF_RUNNING) != 0});
  }
  return found;
}

Result<File> listen_at(SocketAddress& address) {
  auto socket = open_socket(address.any.sa_family);
  if (!socket.ok()) return socket;
  set_port(address, 0);
  if (::bind(socket->get(), &address.any, size_of(address)) != 0 ||
      ::listen(socket->get(), SOMAXCONN) != 0) {
    return failed("cannot listen at " + text_of(address), errno);
  }
  socklen_t size = sizeof address;
  if (::getsockname(socket->get(), &address.any, &size) != 0) {
    return failed("cannot name a socket", errno);
  }
  return socket;
}

Result<File> accept_one(const File& listener) {
  const int raw = ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (raw >= 0) return File::adopt(raw);
  // A caller that hung up before it was answered counts as none.
  if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return File{};
  return failed("cannot accept a connection", errno);
}

Result<File> begin_connect(const SocketAddress& address) {
  auto socket = open_socket(address.any.sa_family);
  if (!socket.ok()) return socket;
  if (::connect(socket->get(), &address.any, size_of(address)) != 0 && errno != EINPROGRESS) {
    return failed("cannot connect to " + text_of(address), errno);
  }
  return socket;
}

Status enable_keepalive(const File& socket) {
  const auto set = [&](int level, int option, int value) {
    return ::setsockopt(socket.get(), level, option, &value, sizeof value) == 0;
  };
  const bool enabled = set(SOL_SOCKET, SO_KEEPALIVE, 1) &&
                       set(IPPROTO_TCP, TCP_KEEPIDLE, Keepalive::idle_s) &&
                       set(IPPROTO_TCP, TCP_KEEPINTVL, Keepalive::interval_s) &&
                       set(IPPROTO_TCP, TCP_KEEPCNT, Keepalive::probes) &&
                       set(IPPROTO_TCP, TCP_USER_TIMEOUT, Keepalive::silence_s * 1000);
  return enabled ? Status{} : failed("cannot set up a socket", errno);
}

}  // namespace trireme::base::tcp
