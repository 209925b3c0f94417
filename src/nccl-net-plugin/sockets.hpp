// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/tcp.hpp"

#include <cstddef>
#include <string>
#include <vector>

/// Non-blocking TCP sockets for the handshake of a connection and for detecting the peer's death.
/// Failures of the system are base::Error.
namespace trireme::nccl_net {

using base::tcp::SocketAddress;

struct Interface {
  std::string name;
  SocketAddress address{};
};
/// One address (IPv4 before IPv6) of each interface that is up and running, except loopback.
std::vector<Interface> find_interfaces();

enum class Progress { pending, done };
/// Bytes that go out or come in piece by piece.
class Transfer {
 public:
  static Transfer sending(std::vector<std::byte> bytes);
  static Transfer receiving(std::size_t size);

  /// Moves what can be moved now; throws Error when the peer is gone.
  Progress advance(const base::File& socket);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  bool sends_ = false;
  std::vector<std::byte> bytes_;
  std::size_t moved_ = 0;
};

enum class PeerState { alive, said_goodbye, gone };
/// State of a peer by its connection, over which only a goodbye is sent.
PeerState look_at_peer(const base::File& socket);
void say_goodbye(const base::File& socket);

}  // namespace trireme::nccl_net
