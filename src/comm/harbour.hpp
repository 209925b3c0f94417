#pragma once

#include "trireme/base/file.hpp"

#include "addresses.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Where a process can be reached by TCP, as plain bytes that it hands to its peers.
struct Berth {
  struct Quay {
    Address address;
    std::int32_t port = 0;
  };
  std::array<std::uint8_t, 16> secret{};
  /// 0 where the system gives no socket.
  std::int32_t quay_count = 0;
  std::array<Quay, most_addresses> quays{};
};

/// Listening sockets, open while peers are expected.
class Harbour {
 public:
  /// Listens at these addresses of this host and nowhere else.
  explicit Harbour(const std::vector<Address>& addresses);
  const Berth& berth() const { return berth_; }

  struct Arrival {
    base::File socket;
    /// What the peer calls itself.
    std::int32_t number;
  };
  /// Waits until `count` peers have come that know the secret, or for `patience`.
  std::vector<Arrival> await(std::size_t count, std::chrono::milliseconds patience);

 private:
  std::vector<base::File> listening_;
  Berth berth_;
};

/// Connects to the first quay of a berth that takes it and says welcome; an empty file when none
/// does within `patience`.
base::File sail_to(const Berth& berth, std::int32_t number, std::chrono::milliseconds patience);

}  // namespace trireme::comm
