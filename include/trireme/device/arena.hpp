// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace trireme::device {

/// Purpose of memory: the lines of a memory plan.
enum class Purpose {
  parameters,     ///< in the type that GEMMs use
  gradients,      ///< fp32, flat
  optimizer,      ///< fp32 master copies and moments
  activations,    ///< saved from forward for backward
  workspace,      ///< temporaries of one action, reused by the next
  communication,  ///< message and reduction buffers
  batch,          ///< tokens
  offloaded,      ///< host memory for what a device holds while it uses it
};
const char* name(Purpose purpose);

/// One block of memory for one purpose, handed out in order. `mark` and `release` give memory
/// back in the reverse order. A measuring arena hands out addresses that nobody may touch and
/// counts bytes: the same code, run over it, tells what a real arena must hold.
class Arena {
 public:
  static constexpr std::size_t alignment = 64;

  /// Counts; holds nothing.
  static Arena measuring(Purpose purpose);
  /// Host memory of exactly this many bytes, zeroed by the system when first touched.
  static Arena host(Purpose purpose, std::size_t capacity_bytes);
  /// Memory of the current GPU, by one allocation of exactly this many bytes. Hosts cannot
  /// follow its tensors. Throws base::Error of ExitCode::topology without a GPU.
  static Arena cuda(Purpose purpose, std::size_t capacity_bytes);
  /// Host memory that GPUs copy from and to at full speed. Throws like cuda().
  static Arena pinned(Purpose purpose, std::size_t capacity_bytes);
  /// Gives a block back.
  using Release = void (*)(std::byte* block, std::size_t bytes);
  /// Memory that somebody else took and knows how to give back.
  static Arena adopt(Purpose purpose, std::byte* block, std::size_t capacity_bytes,
                     Release give_back) {
    return {purpose, block, capacity_bytes, give_back};
  }

  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  ~Arena();

  /// Contiguous, at a multiple of `alignment`. Beyond the capacity is a defect of the memory
  /// plan and ends in ExitCode::internal.
  Tensor allocate(DType dtype, std::initializer_list<std::int64_t> shape);

  /// All of it, as bytes; empty where there is none, or where the arena measures.
  Tensor whole() const;

  using Mark = std::size_t;
  Mark mark() const { return used_bytes_; }
  /// Refused while there is a lease on what lies behind the mark.
  void release(Mark mark);

  Purpose purpose() const { return purpose_; }
  bool is_measuring() const { return block_ == nullptr; }
  std::size_t used_bytes() const { return used_bytes_; }
  std::size_t peak_bytes() const { return peak_bytes_; }
  std::size_t capacity_bytes() const { return capacity_bytes_; }

 private:
  Arena(Purpose purpose, std::byte* block, std::size_t capacity_bytes, Release give_back);

  Purpose purpose_;
  std::byte* block_ = nullptr;
  Release give_back_ = nullptr;
  std::size_t capacity_bytes_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
  /// Ends of ranges on which there are leases.
  std::vector<std::size_t> leased_ends_;

  friend class ArenaLease;
};

/// Lease on a tensor's range of an arena, for what a collective or copy under way reads or writes:
/// a release of the range before the lease ends is a defect. The arena stays where it is.
class ArenaLease {
 public:
  ArenaLease() = default;
  /// Holds nothing of a tensor that lies elsewhere.
  ArenaLease(Arena& arena, const Tensor& tensor);
  ArenaLease(ArenaLease&& other) noexcept;
  ArenaLease& operator=(ArenaLease&& other) noexcept;
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  ~ArenaLease() { end(); }

  void end();

 private:
  Arena* arena_ = nullptr;
  std::size_t range_end_ = 0;
};

/// Gives back at the end of a scope what was allocated inside it.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release(mark_); }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace trireme::device
