#pragma once

#include "trireme/base/file.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Where a process can be reached by TCP, as plain bytes that it hands to its peers.
struct Address {
  /// AF_INET with four bytes or AF_INET6 with sixteen.
  std::int32_t family = 0;
  std::array<std::uint8_t, 16> bytes{};
};
struct Berth {
  static constexpr std::size_t most_addresses = 16;
  std::array<std::uint8_t, 16> secret{};
  std::int32_t port = 0;
  std::int32_t address_count = 0;
  std::array<Address, most_addresses> addresses{};
};

/// A listening socket on every interface, open while peers are expected.
class Harbour {
 public:
  /// Port 0 in berth() where the system gives no socket.
  Harbour();
  const Berth& berth() const { return berth_; }

  struct Arrival {
    base::File socket;
    /// What the peer calls itself.
    std::int32_t number;
  };
  /// Waits until `count` peers have come that know the secret, or for `patience`.
  std::vector<Arrival> await(std::size_t count, std::chrono::milliseconds patience);

 private:
  base::File listening_;
  Berth berth_;
};

/// Connects to the first address of a berth that takes it and knows the secret; an empty file when
/// none does within `patience`.
base::File sail_to(const Berth& berth, std::int32_t number, std::chrono::milliseconds patience);

}  // namespace trireme::comm
