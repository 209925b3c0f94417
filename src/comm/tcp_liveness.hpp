#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace trireme::comm {

/// How a connection that says nothing for hours learns that the other system is gone: one without
/// power or cable closes nothing.
struct TcpLiveness {
  static constexpr int idle_s = 4;
  static constexpr int interval_s = 2;
  static constexpr int probes = 4;
  /// Until silence counts as the end, whether something was to be sent or not.
  static constexpr int silence_s = idle_s + probes * interval_s;
};

/// Lets the system end this TCP connection after TcpLiveness::silence_s of silence. False where an
/// option is refused; errno tells.
inline bool watch_tcp_peer(int socket) {
  const auto set = [&](int level, int option, int value) {
    return ::setsockopt(socket, level, option, &value, sizeof value) == 0;
  };
  return set(SOL_SOCKET, SO_KEEPALIVE, 1) && set(IPPROTO_TCP, TCP_KEEPIDLE, TcpLiveness::idle_s) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, TcpLiveness::interval_s) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, TcpLiveness::probes) &&
         set(IPPROTO_TCP, TCP_USER_TIMEOUT, TcpLiveness::silence_s * 1000);
}

}  // namespace trireme::comm
