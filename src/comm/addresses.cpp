#include "addresses.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace trireme::comm {
namespace {

/// The raw bytes of an IPv4 or IPv6 address or netmask; family 0 for anything else.
Address address_of(const sockaddr* raw) {
  Address address;
  if (raw == nullptr) return address;
  if (raw->sa_family == AF_INET) {
    const auto* place = reinterpret_cast<const sockaddr_in*>(raw);
    std::memcpy(address.bytes.data(), &place->sin_addr, sizeof place->sin_addr);
  } else if (raw->sa_family == AF_INET6) {
    const auto* place = reinterpret_cast<const sockaddr_in6*>(raw);
    if (IN6_IS_ADDR_LINKLOCAL(&place->sin6_addr)) return address;
    std::memcpy(address.bytes.data(), &place->sin6_addr, sizeof place->sin6_addr);
  } else {
    return address;
  }
  address.family = raw->sa_family;
  return address;
}

bool is_usable(const ifaddrs& interface) {
  return (interface.ifa_flags & IFF_UP) != 0 && (interface.ifa_flags & IFF_LOOPBACK) == 0;
}

}  // namespace

Addresses own_addresses() {
  Addresses found{};
  std::size_t count = 0;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return found;
  for (const auto* one = all; one != nullptr && count < found.size(); one = one->ifa_next) {
    auto address = address_of(one->ifa_addr);
    if (!is_usable(*one) || address.family == 0) continue;
    for (const auto byte : address_of(one->ifa_netmask).bytes)
      address.prefix += std::popcount(byte);
    found[count++] = address;
  }
  ::freeifaddrs(all);
  return found;
}

bool share_network(const Address& one, const Address& other) {
  if (one.family == 0 || one.family != other.family || one.prefix != other.prefix) return false;
  for (int bit = 0; bit < one.prefix; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> (bit % 8);
    if (((one.bytes[byte] ^ other.bytes[byte]) & mask) != 0) return false;
  }
  return true;
}

std::vector<Address> towards(const Addresses& own, const std::vector<Address>& peers) {
  std::vector<Address> all;
  std::vector<Address> shared;
  for (const auto& address : own) {
    if (address.family == 0) continue;
    all.push_back(address);
    const bool meets = std::any_of(peers.begin(), peers.end(), [&](const Address& peer) {
      return share_network(address, peer);
    });
    if (meets) shared.push_back(address);
  }
  return shared.empty() ? all : shared;
}

}  // namespace trireme::comm
