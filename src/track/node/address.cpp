// SPDX-License-Identifier: Apache-2.0
#include "address.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/base/text.hpp"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

namespace trireme::track {
namespace {

bool same_address(const base::tcp::SocketAddress& one, const base::tcp::SocketAddress& other) {
  auto a = one;
  auto b = other;
  base::tcp::set_port(a, 0);
  base::tcp::set_port(b, 0);
  return base::tcp::text_of(a) == base::tcp::text_of(b);
}

/// Addresses that the name of this host stands for.
std::vector<base::tcp::SocketAddress> addresses_of_host() {
  std::array<char, 256> name{};
  std::vector<base::tcp::SocketAddress> found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::gethostname(name.data(), name.size() - 1) != 0 ||
      ::getaddrinfo(name.data(), nullptr, &hints, &list) != 0) {
    return found;
  }
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(base::tcp::SocketAddress)) continue;
    base::tcp::SocketAddress address{};
    std::copy_n(reinterpret_cast<const std::byte*>(each->ai_addr), each->ai_addrlen,
                reinterpret_cast<std::byte*>(&address));
    found.push_back(address);
  }
  ::freeaddrinfo(list);
  return found;
}

/// "10.0.0.1", without a port.
std::string host_text(base::tcp::SocketAddress address) {
  std::array<char, NI_MAXHOST> text{};
  const auto size = base::tcp::size_of(address);
  if (::getnameinfo(&address.any, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) !=
      0) {
    return {};
  }
  return text.data();
}

}  // namespace

base::Result<std::string> address_at(const std::optional<std::string>& interface) {
  if (interface == "lo") return std::string("127.0.0.1");
  const auto all = base::tcp::interface_addresses();
  if (!all.ok()) return all.failure();
  const auto named = addresses_of_host();
  std::string first;
  std::string interfaces;
  for (const auto& each : *all) {
    const auto text = host_text(each.address);
    // One of a link alone needs its interface beside it.
    if (text.empty() || text.find('%') != std::string::npos) continue;
    if (interface == each.interface) return text;
    interfaces += (interfaces.empty() ? "" : ", ") + each.interface;
    for (const auto& address : named) {
      if (!interface && same_address(address, each.address)) return text;
    }
    if (first.empty()) first = text;
  }
  if (interface) {
    return base::usage_failure(
        base::format("track.prometheus_interface = {} is no interface of this host that is up (it "
                     "has {} and lo)",
                     base::printable(*interface), interfaces.empty() ? "none" : interfaces));
  }
  return first.empty() ? std::string("127.0.0.1") : first;
}

}  // namespace trireme::track
