// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>

namespace trireme::testing::simulated_gpu {

/// Memory from one call. Nobody can touch it after it was freed, and its address is never given out
/// again.
struct Block {
  enum class Kind {
    device,      ///< the host can touch it while the GPU works, and libraries of the host follow it
    translated,  ///< nobody can touch it; what works in the GPU's stead finds it at `reach`
    pinned       ///< the host's
  };

  std::size_t bytes = 0;
  Kind kind = Kind::device;
  int gpu = 0;
  /// Purpose of the memory, in the texts of faults.
  const char* label = "device memory";
  /// Lets work end that was issued before it is freed, and may use it.
  std::function<void()> before_free{};
  std::byte* begin = nullptr;
  std::byte* reach = nullptr;
  bool freed = false;

  /// Whole pages; one more follows that nobody can touch.
  std::size_t mapped() const;
  bool holds(const void* address, std::size_t count) const;
  /// "byte 12 of 4096 of 'device memory'".
  std::string describe(const void* address) const;
};

/// All memory of GPUs and all pinned memory. Fresh memory is full of NaN (-1 as whole numbers).
///
/// A host that touches a GPU's memory all the same dies of SIGSEGV at once, after a line on stderr:
/// "the host touched byte 12 of 4096 of 'gradients', which is out of its reach …".
class Memory {
 public:
  /// Null: there is no room.
  Block* allocate(Block block);
  void free(Block& block);
  /// Freed or not; the end counts, for tensors without elements. Null: the host's own.
  Block* block_of(const void* address);
  /// Memory that blocks of a GPU take, which it gives out in large pieces.
  std::size_t taken_bytes(int gpu) const;

  /// Lets the host touch blocks of Kind::device: while the GPU works.
  class Opened {
   public:
    explicit Opened(Memory& memory) : memory_(memory) {
      if (memory_.opened_++ == 0) memory_.protect();
    }
    ~Opened() {
      if (--memory_.opened_ == 0) memory_.protect();
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;

   private:
    Memory& memory_;
  };

 private:
  void protect() const;
  void protect(const Block& block) const;

  std::map<const std::byte*, Block> blocks_;
  std::set<const Block*> on_gpus_;  // of Kind::device
  int opened_ = 0;
};

}  // namespace trireme::testing::simulated_gpu
