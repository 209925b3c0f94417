// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/arena.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace trireme::device {
namespace {

/// Base address of measuring arenas: never null, never mapped, and another one for each purpose, as
/// operations ask whether two tensors are one.
constexpr std::uintptr_t nowhere(Purpose purpose) {
  return 4096 + (static_cast<std::uintptr_t>(purpose) << 48);
}

constexpr std::size_t rounded(std::size_t bytes) {
  return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}

std::byte* map_memory(Purpose purpose, std::size_t bytes) {
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) {
    base::throw_errno(base::ExitCode::topology,
                      base::format("cannot map {} for {} (the plan needs it; use more ranks, a "
                                   "smaller micro-batch or activation checkpointing)",
                                   base::bytes_text(bytes), name(purpose)),
                      errno);
  }
  // Large pages where the system has them; refusal costs speed alone.
  ::madvise(block, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(block);
}

}  // namespace

const char* name(Purpose purpose) {
  switch (purpose) {
    case Purpose::parameters:
      return "parameters";
    case Purpose::gradients:
      return "gradients";
    case Purpose::optimizer:
      return "optimizer";
    case Purpose::activations:
      return "activations";
    case Purpose::workspace:
      return "workspace";
    case Purpose::communication:
      return "communication";
    case Purpose::batch:
      return "batch";
    case Purpose::offloaded:
      return "offloaded";
  }
  return "?";
}

Arena::Arena(Purpose purpose, std::byte* block, std::size_t capacity_bytes, Release give_back)
    : purpose_(purpose), block_(block), give_back_(give_back), capacity_bytes_(capacity_bytes) {}

Arena Arena::measuring(Purpose purpose) {
  return {purpose, nullptr, 0, nullptr};
}

Arena Arena::host(Purpose purpose, std::size_t capacity_bytes) {
  // An empty arena still is a real one: at least one page.
  return {purpose, map_memory(purpose, std::max<std::size_t>(capacity_bytes, 1)), capacity_bytes,
          [](std::byte* block, std::size_t bytes) { ::munmap(block, bytes); }};
}

Arena::Arena(Arena&& other) noexcept
    : purpose_(other.purpose_),
      block_(std::exchange(other.block_, nullptr)),
      give_back_(other.give_back_),
      capacity_bytes_(std::exchange(other.capacity_bytes_, 0)),
      used_bytes_(std::exchange(other.used_bytes_, 0)),
      peak_bytes_(std::exchange(other.peak_bytes_, 0)),
      leased_ends_(std::move(other.leased_ends_)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(purpose_, other.purpose_);
  std::swap(block_, other.block_);
  std::swap(give_back_, other.give_back_);
  std::swap(capacity_bytes_, other.capacity_bytes_);
  std::swap(used_bytes_, other.used_bytes_);
  std::swap(peak_bytes_, other.peak_bytes_);
  std::swap(leased_ends_, other.leased_ends_);
  return *this;
}

Arena::~Arena() {
  if (block_ != nullptr) give_back_(block_, std::max<std::size_t>(capacity_bytes_, 1));
}

Tensor Arena::allocate(DType dtype, std::initializer_list<std::int64_t> shape) {
  const auto start = is_measuring() ? nowhere(purpose_) + used_bytes_
                                    : reinterpret_cast<std::uintptr_t>(block_) + used_bytes_;
  const Tensor tensor(reinterpret_cast<void*>(start), dtype, shape);
  const auto bytes = rounded(tensor.byte_count());
  TRIREME_EXPECT(
      is_measuring() || used_bytes_ + bytes <= capacity_bytes_,
      base::format("{} needs {} but its arena has {} of {} left", name(purpose_),
                   base::bytes_text(bytes), base::bytes_text(capacity_bytes_ - used_bytes_),
                   base::bytes_text(capacity_bytes_)));
  used_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return tensor;
}

Tensor Arena::whole() const {
  if (capacity_bytes_ == 0) return {};
  // Any type with elements of one byte will do.
  return {block_, DType::e4m3, {static_cast<std::int64_t>(capacity_bytes_)}};
}

void Arena::release(Mark mark) {
  TRIREME_EXPECT(mark <= used_bytes_, "memory is released in the reverse order of allocation");
  const bool is_free = std::all_of(leased_ends_.begin(), leased_ends_.end(),
                                   [mark](std::size_t end) { return end <= mark; });
  TRIREME_EXPECT(is_free, base::format("memory for {} is released while something under way reads "
                                       "or writes it",
                                       name(purpose_)));
  used_bytes_ = mark;
}

ArenaLease::ArenaLease(Arena& arena, const Tensor& tensor) {
  const auto begin = arena.is_measuring() ? nowhere(arena.purpose_)
                                          : reinterpret_cast<std::uintptr_t>(arena.block_);
  const auto at = reinterpret_cast<std::uintptr_t>(tensor.raw());
  if (at < begin || at - begin >= arena.used_bytes_) return;
  arena_ = &arena;
  range_end_ = at - begin + tensor.byte_count();
  arena.leased_ends_.push_back(range_end_);
}

ArenaLease::ArenaLease(ArenaLease&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)), range_end_(other.range_end_) {}

ArenaLease& ArenaLease::operator=(ArenaLease&& other) noexcept {
  std::swap(arena_, other.arena_);
  std::swap(range_end_, other.range_end_);
  return *this;
}

void ArenaLease::end() {
  if (arena_ == nullptr) return;
  auto& ends = std::exchange(arena_, nullptr)->leased_ends_;
  ends.erase(std::find(ends.begin(), ends.end(), range_end_));
}

}  // namespace trireme::device
