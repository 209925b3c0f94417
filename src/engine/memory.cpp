// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/memory.hpp"

#include <numeric>

namespace trireme::engine {

std::size_t total_bytes(const MemoryUse& use) {
  return std::accumulate(use.begin(), use.end(), std::size_t{0});
}

Memory Memory::measuring() {
  Memory memory;
  for (const auto purpose : all_purposes) {
    memory.arenas_.push_back(device::Arena::measuring(purpose));
  }
  return memory;
}

Memory Memory::on(device::Device& device, const MemoryUse& capacity_bytes) {
  Memory memory;
  for (std::size_t index = 0; index < all_purposes.size(); ++index) {
    memory.arenas_.push_back(device.arena(all_purposes[index], capacity_bytes[index]));
  }
  if (!device.is_host()) {
    const auto batch = static_cast<std::size_t>(device::Purpose::batch);
    memory.staging_ = device.staging(device::Purpose::batch, capacity_bytes[batch]);
  }
  return memory;
}

MemoryUse Memory::capacity_bytes() const {
  MemoryUse use{};
  for (std::size_t index = 0; index < use.size(); ++index) {
    use[index] = arenas_[index].capacity_bytes();
  }
  return use;
}

MemoryUse Memory::peak_bytes() const {
  MemoryUse use{};
  for (std::size_t index = 0; index < use.size(); ++index) {
    use[index] = arenas_[index].peak_bytes();
  }
  return use;
}

}  // namespace trireme::engine
