#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// An address of an interface, as plain bytes that a process hands to its peers.
struct Address {
  /// AF_INET with four bytes or AF_INET6 with sixteen; 0: none.
  std::int32_t family = 0;
  std::array<std::uint8_t, 16> bytes{};
  /// Length of its network's prefix, in bits.
  std::int32_t prefix = 0;
};

/// So many of one process are enough for its peers to find one that they share.
constexpr std::size_t most_addresses = 16;
using Addresses = std::array<Address, most_addresses>;

/// Those of interfaces that are up, but for the loopback and links' own.
Addresses own_addresses();

/// Whether they are in one network, so that one reaches the other without a router.
bool share_network(const Address& one, const Address& other);

/// Those of `own` that share a network with somebody; all where nobody does, because then peers
/// come through a router, to whichever.
std::vector<Address> towards(const Addresses& own, const std::vector<Address>& peers);

}  // namespace trireme::comm
