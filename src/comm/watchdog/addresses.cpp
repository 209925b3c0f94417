// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/addresses.hpp"

#include <algorithm>
#include <span>

namespace trireme::comm {
namespace {

/// The 4 or 16 bytes of an address, in network order.
std::span<const std::uint8_t> bytes_of(const base::tcp::SocketAddress& address) {
  if (address.any.sa_family == AF_INET6) return address.v6.sin6_addr.s6_addr;
  return {reinterpret_cast<const std::uint8_t*>(&address.v4.sin_addr), sizeof address.v4.sin_addr};
}

bool is_link_local(const base::tcp::SocketAddress& address) {
  return address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.v6.sin6_addr);
}

}  // namespace

Addresses own_addresses() {
  Addresses found{};
  std::size_t count = 0;
  const auto all = base::tcp::interface_addresses();
  if (!all.ok()) return found;
  for (const auto& each : *all) {
    if (count == found.size()) break;
    if (!is_link_local(each.address)) found[count++] = {each.address, each.prefix_bits};
  }
  return found;
}

bool share_network(const Address& one, const Address& other) {
  if (one.is_none() || one.socket.any.sa_family != other.socket.any.sa_family ||
      one.prefix_bits != other.prefix_bits) {
    return false;
  }
  const auto mine = bytes_of(one.socket);
  const auto theirs = bytes_of(other.socket);
  for (int bit = 0; bit < one.prefix_bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if (((mine[byte] ^ theirs[byte]) & mask) != 0) return false;
  }
  return true;
}

std::vector<Address> towards(const Addresses& own, const std::vector<Address>& peers) {
  std::vector<Address> all;
  std::vector<Address> shared;
  for (const auto& address : own) {
    if (address.is_none()) continue;
    all.push_back(address);
    const bool meets = std::any_of(peers.begin(), peers.end(), [&](const Address& peer) {
      return share_network(address, peer);
    });
    if (meets) shared.push_back(address);
  }
  return shared.empty() ? all : shared;
}

}  // namespace trireme::comm
