// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/load.hpp"
#include "trireme/device/arena.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// Items whose destinations lie on a device, in turns: the values of each fit its host memory of
/// load_staging_bytes, however large the items are together.
class StagedItems {
 public:
  /// Destinations are contiguous. The device outlives it.
  StagedItems(std::span<const LoadItem> items, device::Device& device);

  std::size_t turns() const { return turns_.size(); }
  /// Items of a turn, with destinations in host memory; none past the last.
  std::vector<LoadItem> of_turn(std::size_t turn) const;
  /// Copies the values of a turn to the device: done when this returns.
  void store(std::size_t turn);

 private:
  void add(const LoadItem& item);

  device::Device& device_;
  /// Items with destinations on the device, at most as long as the host memory.
  std::vector<std::vector<LoadItem>> turns_;
  /// Bytes of the last turn.
  std::size_t bytes_ = 0;
  /// None without items.
  std::optional<device::Arena> memory_;
};

}  // namespace trireme::checkpoint
