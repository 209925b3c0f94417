// SPDX-License-Identifier: Apache-2.0
#include "comm/staged/host_blocks.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"

#include <algorithm>

namespace trireme::comm {
namespace {

/// Blocks are multiples of this, so that messages of nearly equal sizes share them.
constexpr std::size_t granule = std::size_t{64} << 10;

}  // namespace

HostBlocks::~HostBlocks() {
  try {
    for (auto& block : free_) block.unused.wait();
  } catch (const base::Error& error) {
    base::log::local::error("comm", "copies from staging memory failed: {}", error.what());
  }
}

HostBlocks::Lease HostBlocks::take(std::size_t bytes) {
  const auto fits = std::find_if(free_.begin(), free_.end(), [&](const Free& block) {
    return block.arena.capacity_bytes() >= bytes;
  });
  if (fits != free_.end()) {
    fits->unused.wait();
    auto arena = std::move(fits->arena);
    free_.erase(fits);
    return {*this, std::move(arena)};
  }
  // A block that was too small is replaced, so that no more is held than was ever in use.
  if (!free_.empty()) {
    free_.back().unused.wait();
    free_.pop_back();
  }
  const auto rounded = (bytes + granule) / granule * granule;
  return {*this, device_.staging(device::Purpose::communication, rounded)};
}

void HostBlocks::give_back(device::Arena arena) {
  arena.release(0);
  try {
    free_.push_back({std::move(arena), device_.record()});
  } catch (const base::Error& error) {
    // Block is not reused, because copies may still be under way; it is lost until the process
    // ends.
    base::log::local::error("comm", "cannot mark the end of copies: {}", error.what());
  }
}

}  // namespace trireme::comm
