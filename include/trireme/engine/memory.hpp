// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::engine {

inline constexpr std::array all_purposes{
    device::Purpose::parameters,  device::Purpose::gradients, device::Purpose::optimizer,
    device::Purpose::activations, device::Purpose::workspace, device::Purpose::communication,
    device::Purpose::batch,       device::Purpose::offloaded,
};
/// All but the last, which is host memory.
inline constexpr auto device_purposes = std::span(all_purposes).first<all_purposes.size() - 1>();

/// Bytes by purpose, in the order of all_purposes.
using MemoryUse = std::array<std::size_t, all_purposes.size()>;
/// Memory of the device.
std::size_t total_bytes(const MemoryUse& use);
/// Host memory of Purpose::offloaded, beside it.
std::size_t offloaded_bytes(const MemoryUse& use);
/// Purposes that a use is told by: all, but for offloaded where nothing is.
std::span<const device::Purpose> told_purposes(const MemoryUse& use);

/// Arenas of an engine, one per purpose, all on one device but the one of Purpose::offloaded.
class Memory {
 public:
  static Memory measuring();
  static Memory on(device::Device& device, const MemoryUse& capacity_bytes);
  static Memory host(const MemoryUse& capacity_bytes) {
    return on(device::host_device(), capacity_bytes);
  }

  device::Arena& of(device::Purpose purpose) { return arenas_[static_cast<std::size_t>(purpose)]; }
  /// Host memory as large as Purpose::batch, which is filled from it; null where the host fills
  /// batches itself.
  device::Arena* batch_staging() { return staging_ ? &*staging_ : nullptr; }
  MemoryUse capacity_bytes() const;
  MemoryUse peak_bytes() const;

 private:
  std::vector<device::Arena> arenas_;
  std::optional<device::Arena> staging_;
};

}  // namespace trireme::engine
