// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/base/result.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

/// TCP sockets that never block, and the addresses of this host. A failure has ExitCode::peer and
/// says what could not be done and why.
namespace trireme::base::tcp {

/// IPv4 or IPv6 address with port; plain bytes, which peers may hand to each other.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};
/// "10.0.0.1:4711", "[fe80::1]:4711".
std::string text_of(const SocketAddress& address);
socklen_t size_of(const SocketAddress& address);
std::uint16_t port_of(const SocketAddress& address);
void set_port(SocketAddress& address, std::uint16_t port);

/// One address of a network interface of the network namespace that this process is in.
struct InterfaceAddress {
  std::string interface;
  SocketAddress address{};
  /// Length of the network's prefix, in bits.
  int prefix_bits = 0;
  bool is_running = false;
};
/// Addresses of interfaces that are up, but loopback; in the system's order.
Result<std::vector<InterfaceAddress>> interface_addresses();

/// Listens at the address, at a port that the system chooses and writes into it.
Result<File> listen_at(SocketAddress& address);
/// The next connection to a listener; an empty file where nobody has connected yet.
Result<File> accept_one(const File& listener);
/// Begins to connect: once the socket can be written to, it is connected, or has failed.
Result<File> begin_connect(const SocketAddress& address);

/// Keepalive of connections that are idle for hours: a system without power or cable closes
/// nothing.
struct Keepalive {
  static constexpr int idle_s = 4;
  static constexpr int interval_s = 2;
  static constexpr int probes = 4;
  /// Seconds of silence after which the connection ends, whether data was to be sent or not.
  static constexpr int silence_s = idle_s + probes * interval_s;
};
/// Has the system end this connection after Keepalive::silence_s of silence.
Status enable_keepalive(const File& socket);

}  // namespace trireme::base::tcp
