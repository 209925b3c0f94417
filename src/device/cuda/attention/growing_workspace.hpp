// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace trireme::device::cuda {

/// Memory of exactly the largest size that was asked for, so that a run takes what its plan says.
/// `Block` owns memory: get(), and an empty one by default. A block that work under capture was
/// given stays when a larger one comes: a graph names its address at every launch.
template <typename Block>
class GrowingWorkspace {
 public:
  enum class Use { issued, captured };

  /// `allocate(bytes)` makes a block; `wait()` returns once issued work is done with the last one.
  GrowingWorkspace(std::function<Block(std::size_t)> allocate, std::function<void()> wait)
      : allocate_(std::move(allocate)), wait_(std::move(wait)) {}

  void* take(std::size_t bytes, Use use) {
    if (bytes > bytes_) grow(bytes);
    if (use == Use::captured) captured_ = true;
    return block_.get();
  }
  /// All blocks together.
  std::size_t total_bytes() const { return bytes_ + kept_bytes_; }

 private:
  void grow(std::size_t bytes) {
    wait_();
    if (captured_) {
      kept_.push_back(std::move(block_));
      kept_bytes_ += bytes_;
      captured_ = false;
    }
    // Order: both at once might not fit.
    block_ = {};
    bytes_ = 0;
    block_ = allocate_(bytes);
    bytes_ = bytes;
  }

  std::function<Block(std::size_t)> allocate_;
  std::function<void()> wait_;
  Block block_;
  std::size_t bytes_ = 0;
  bool captured_ = false;
  std::vector<Block> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace trireme::device::cuda
