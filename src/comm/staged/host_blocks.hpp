// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace trireme::comm {

/// Pool of host memory that a device copies from and to: allocation is slow. A returned block is
/// lent again once the copies issued until then are done.
class HostBlocks {
 public:
  explicit HostBlocks(device::Device& device) : device_(device) {}
  HostBlocks(const HostBlocks&) = delete;
  HostBlocks& operator=(const HostBlocks&) = delete;
  /// Waits for the copies under way.
  ~HostBlocks();

  /// Lease of a block, which is returned at its end.
  class Lease {
   public:
    Lease(HostBlocks& blocks, device::Arena arena) : blocks_(&blocks), arena_(std::move(arena)) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Lease(Lease&& other) noexcept
        : blocks_(std::exchange(other.blocks_, nullptr)), arena_(std::move(other.arena_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (blocks_ != nullptr) blocks_->give_back(std::move(arena_));
    }
    /// Allocates a contiguous tensor.
    device::Tensor allocate(device::DType dtype, std::int64_t count) {
      return arena_.allocate(dtype, {count});
    }

   private:
    HostBlocks* blocks_;
    device::Arena arena_;
  };
  Lease take(std::size_t bytes);

 private:
  struct Free {
    device::Arena arena;
    device::Event unused;
  };
  void give_back(device::Arena arena);

  device::Device& device_;
  std::vector<Free> free_;
};

}  // namespace trireme::comm
