// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/memory.hpp"

#include <numeric>

namespace trireme::engine {

static_assert(all_purposes.back() == device::Purpose::offloaded);

std::size_t total_bytes(const MemoryUse& use) {
  return std::accumulate(use.begin(), use.end() - 1, std::size_t{0});
}

std::size_t offloaded_bytes(const MemoryUse& use) {
  return use.back();
}

std::span<const device::Purpose> told_purposes(const MemoryUse& use) {
  if (offloaded_bytes(use) > 0) return all_purposes;
  return device_purposes;
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
    const auto purpose = all_purposes[index];
    const auto bytes = capacity_bytes[index];
    memory.arenas_.push_back(purpose == device::Purpose::offloaded ? device.staging(purpose, bytes)
                                                                   : device.arena(purpose, bytes));
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
