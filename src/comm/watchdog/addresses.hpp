// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/tcp.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Address of an interface, as plain bytes that a process sends to its peers.
struct Address {
  /// Address with port 0; its family is 0 where there is none.
  base::tcp::SocketAddress socket{};
  /// Length of its network's prefix, in bits.
  std::int32_t prefix_bits = 0;

  bool is_none() const { return socket.any.sa_family == 0; }
};

/// Most addresses of one process: enough for its peers to find one that they share.
constexpr std::size_t most_addresses = 16;
using Addresses = std::array<Address, most_addresses>;

/// Addresses of this host's interfaces that are up, but those of loopback and IPv6 links.
Addresses own_addresses();

/// True if both are in one network, so that one reaches the other without a router.
bool share_network(const Address& one, const Address& other);

/// Addresses of `own` that share a network with one of `peers`; all of them if none does, because
/// peers then connect through a router, to any of them.
std::vector<Address> towards(const Addresses& own, const std::vector<Address>& peers);

}  // namespace trireme::comm
