#pragma once

#include "trireme/device/arena.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace trireme::engine {

inline constexpr std::array all_purposes{
    device::Purpose::parameters,  device::Purpose::gradients, device::Purpose::optimizer,
    device::Purpose::activations, device::Purpose::workspace, device::Purpose::communication,
    device::Purpose::batch,
};

/// Bytes by purpose, in the order of all_purposes.
using MemoryUse = std::array<std::size_t, all_purposes.size()>;
std::size_t total_bytes(const MemoryUse& use);

/// One arena per purpose.
class Memory {
 public:
  static Memory measuring();
  static Memory host(const MemoryUse& capacity_bytes);

  device::Arena& of(device::Purpose purpose) { return arenas_[static_cast<std::size_t>(purpose)]; }
  MemoryUse peak_bytes() const;

 private:
  std::vector<device::Arena> arenas_;
};

}  // namespace trireme::engine
