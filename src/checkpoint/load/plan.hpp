// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/checkpoint/items.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// Elements that one stored box gives to one destination.
struct Transfer {
  const StoredTensor* tensor = nullptr;
  const StoredBox* stored = nullptr;
  const LoadItem* item = nullptr;
  BoxRuns runs;

  std::uint64_t element_bytes() const { return device::size_of(tensor->dtype); }
  /// File bytes from the first wanted element to the last.
  std::uint64_t begin() const {
    return stored->byte + static_cast<std::uint64_t>(runs.stored_begin()) * element_bytes();
  }
  std::uint64_t end() const {
    return stored->byte + static_cast<std::uint64_t>(runs.stored_end()) * element_bytes();
  }
};

/// Transfers from one file to a rank, and the blocks to read for them.
struct FileReads {
  std::size_t file = 0;
  std::vector<Transfer> transfers;    ///< ascending by stored byte
  std::vector<std::uint64_t> blocks;  ///< ascending; each holds a required element
};

/// Failures (checkpoint): no such tensor, other shape or type, box outside the shape.
base::Result<std::vector<FileReads>> plan_reads(const Manifest& manifest,
                                                std::span<const LoadItem> items);

/// Copies the transfer's elements that lie in file bytes [begin, begin + block.size()) to its
/// destination.
void deliver(const Transfer& transfer, std::uint64_t begin, std::span<const std::byte> block);

}  // namespace trireme::checkpoint
