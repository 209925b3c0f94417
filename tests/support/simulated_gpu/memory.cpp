// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/memory.hpp"

#include "trireme/base/format.hpp"

#include "support/fault_names.hpp"
#include "support/simulated_gpu/gpu.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace trireme::testing::simulated_gpu {
namespace {

constexpr std::size_t page = 4096;
/// A GPU's pages.
constexpr std::size_t piece_bytes = std::size_t{2} << 20;
/// Small blocks share a page.
constexpr std::size_t small_bytes = std::size_t{1} << 20;
/// Larger blocks are poisoned at both ends alone: what nobody touches should take no memory, and no
/// time when it is opened and closed.
constexpr std::size_t poisoned_bytes = std::size_t{8} << 20;
constexpr std::size_t poisoned_end_bytes = std::size_t{64} << 10;

const Memory* watched = nullptr;

bool name_fault(const void* address) {
  const auto* block = watched == nullptr ? nullptr : watched->block_of(address);
  if (block == nullptr) return false;
  faults::say("the host touched byte ");
  faults::say(static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->begin()));
  faults::say(" of ");
  faults::say(block->bytes());
  faults::say(block->freed() ? " of memory that was freed\n"
                             : " of a GPU's memory, which is out of its reach\n");
  return true;
}

void poison(std::byte* begin, std::size_t bytes) {
  if (bytes <= poisoned_bytes) {
    std::memset(begin, 0xFF, bytes);
    return;
  }
  std::memset(begin, 0xFF, poisoned_end_bytes);
  std::memset(begin + bytes - poisoned_end_bytes, 0xFF, poisoned_end_bytes);
}

}  // namespace

std::size_t Block::mapped() const {
  return (std::max<std::size_t>(bytes_, 1) + page - 1) / page * page;
}

bool Block::holds(const void* address, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(address);
  return !freed_ && at >= begin_ && at <= begin_ + bytes_ &&
         bytes <= static_cast<std::size_t>(begin_ + bytes_ - at);
}

std::string Block::describe(const void* address) const {
  return base::format("byte {} of {} of {}{}", static_cast<const std::byte*>(address) - begin_,
                      bytes_, kind_ == Kind::device ? "device memory" : "pinned memory",
                      freed_ ? " that was freed" : "");
}

void* Block::check(const void* origin, std::int64_t index, int count, std::size_t bytes,
                   device::simt::Access access, const device::simt::Place& where) {
  const auto address = static_cast<std::uintptr_t>(reinterpret_cast<std::intptr_t>(origin) +
                                                   index * static_cast<std::int64_t>(bytes));
  auto* const place = reinterpret_cast<std::byte*>(address);
  const auto whole = bytes * static_cast<std::size_t>(count);
  const char* verb = access == device::simt::Access::read ? "reads" : "writes";
  if (!holds(place, whole)) {
    device::simt::Executor::here().fail(
        where, base::format("{} {} bytes out of bounds: {}", verb, whole, describe(place)));
  }
  if (address % whole != 0) {
    device::simt::Executor::here().fail(
        where, base::format("{} {} bytes at an address that is not a multiple of them "
                            "(misaligned): {}",
                            verb, whole, describe(place)));
  }
  return place;
}

Block* Memory::allocate(std::size_t bytes, Block::Kind kind, int gpu) {
  const Block sizes(nullptr, bytes, kind, gpu);
  void* const pages = ::mmap(nullptr, sizes.mapped() + page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  watched = this;
  faults::watch(&name_fault);
  auto* const begin = static_cast<std::byte*>(pages);
  poison(begin, sizes.mapped());
  ::mprotect(begin + sizes.mapped(), page, PROT_NONE);
  auto owner = std::make_unique<Block>(begin, bytes, kind, gpu);
  auto* const block = owner.get();
  blocks_.emplace(begin, std::move(owner));
  if (kind == Block::Kind::device) {
    on_gpus_.emplace(begin, block);
    if (!open_) ::mprotect(begin, block->mapped(), PROT_NONE);
  }
  return block;
}

/// The addresses stay taken, so that whoever still uses them is found.
void Memory::free(Block& block) {
  block.free();
  on_gpus_.erase(block.begin());
  ::mmap(block.begin(), block.mapped(), PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

Block* Memory::block_of(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  auto* const block = std::prev(next)->second.get();
  return at <= block->begin() + block->mapped() ? block : nullptr;
}

std::size_t Memory::taken_bytes(int gpu) const {
  std::size_t small = 0;
  std::size_t large = 0;
  const auto whole = [](std::size_t bytes) {
    return (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
  };
  for (const auto& [begin, block] : on_gpus_) {
    if (block->gpu() != gpu) continue;
    (block->bytes() < small_bytes ? small : large) +=
        block->bytes() < small_bytes ? block->mapped() : whole(block->bytes());
  }
  return whole(small) + large;
}

void Memory::let_in(bool everybody) {
  if (open_ == everybody) return;
  open_ = everybody;
  const int protection = everybody ? PROT_READ | PROT_WRITE : PROT_NONE;
  for (const auto& [begin, block] : on_gpus_) {
    ::mprotect(block->begin(), block->mapped(), protection);
  }
}

device::simt::Target* Memory::find(const void* address) {
  if (address == nullptr) return nullptr;
  auto* const block = block_of(address);
  if (block == nullptr || block->freed()) {
    throw device::simt::Fault("a kernel is given memory that its GPU does not have: " +
                              describe(address));
  }
  if (block->kind() == Block::Kind::device && block->gpu() != this_thread().gpu) {
    throw device::simt::Fault("a kernel is given memory of another GPU: " + describe(address));
  }
  return block;
}

std::string Memory::describe(const void* address) const {
  const auto* const block = block_of(address);
  return block == nullptr ? "memory of the host" : block->describe(address);
}

}  // namespace trireme::testing::simulated_gpu
