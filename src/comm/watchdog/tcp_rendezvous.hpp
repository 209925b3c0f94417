// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include "comm/watchdog/addresses.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Endpoint at which a process listens for TCP connections, as plain bytes for its peers.
struct ListenerInfo {
  /// Random bytes that a peer must send before it is let in.
  std::array<std::uint8_t, 16> secret{};
  /// Number of endpoints; 0 where the system gives no socket.
  std::int32_t endpoint_count = 0;
  std::array<base::tcp::SocketAddress, most_addresses> endpoints{};
};

/// Listening sockets, open while peers are expected.
class Listener {
 public:
  /// Listens at these addresses of this host and nowhere else.
  explicit Listener(const std::vector<Address>& addresses);
  const ListenerInfo& info() const { return info_; }

  struct Connection {
    base::File socket;
    /// Number that the peer gave to connect_to().
    std::int32_t number;
  };
  /// Waits until `count` peers with the secret have connected, or for `limit`: one connection each,
  /// the one that the peer keeps.
  std::vector<Connection> accept(std::size_t count, std::chrono::milliseconds limit);

 private:
  std::vector<base::File> listening_;
  ListenerInfo info_;
};

/// Connects to the first endpoint that lets this process in; an empty file when none does within
/// `limit`.
base::File connect_to(const ListenerInfo& listener, std::int32_t number,
                      std::chrono::milliseconds limit);

}  // namespace trireme::comm
