// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/simt/memory.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace trireme::testing::simulated_gpu {

/// Memory from one call. Of a GPU: the host cannot touch it but while the GPU works, nobody can
/// after it was freed, and its address is never given out again.
class Block final : public device::simt::Target {
 public:
  enum class Kind { device, pinned };

  Block(std::byte* begin, std::size_t bytes, Kind kind, int gpu)
      : begin_(begin), bytes_(bytes), kind_(kind), gpu_(gpu) {}

  std::byte* begin() const { return begin_; }
  std::size_t bytes() const { return bytes_; }
  /// Whole pages; one more follows that nobody can touch.
  std::size_t mapped() const;
  Kind kind() const { return kind_; }
  int gpu() const { return gpu_; }
  bool freed() const { return freed_; }
  void free() { freed_ = true; }
  bool holds(const void* address, std::size_t bytes) const;
  /// "byte 12 of 4096 of device memory".
  std::string describe(const void* address) const;

  /// For kernels: inside, aligned and not freed.
  void* check(const void* origin, std::int64_t index, int count, std::size_t bytes,
              device::simt::Access access, const device::simt::Place& where) override;

 private:
  std::byte* begin_;
  std::size_t bytes_;
  Kind kind_;
  int gpu_;
  bool freed_ = false;
};

/// All memory of the GPUs and all pinned memory.
class Memory final : public device::simt::AddressSpace {
 public:
  /// Poisoned. Null: there is no room.
  Block* allocate(std::size_t bytes, Block::Kind kind, int gpu);
  void free(Block& block);
  /// Freed or not; the end counts, for tensors without elements. Null: the host's own.
  Block* block_of(const void* address) const;
  /// What blocks of a GPU take of its memory, which it gives out in large pieces.
  std::size_t taken_bytes(int gpu) const;

  /// While the GPU works, what works in its stead reaches its memory.
  void open() { let_in(true); }
  void close() { let_in(false); }

  device::simt::Target* find(const void* address) override;
  std::string describe(const void* address) const override;

 private:
  void let_in(bool everybody);

  std::map<const std::byte*, std::unique_ptr<Block>> blocks_;
  std::map<const std::byte*, Block*> on_gpus_;
  bool open_ = false;
};

}  // namespace trireme::testing::simulated_gpu
