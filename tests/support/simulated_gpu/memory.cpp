// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/memory.hpp"

#include "trireme/base/format.hpp"

#include "support/fault_names.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

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

Memory* watched = nullptr;

bool name_fault(const void* address) {
  const auto* block = watched == nullptr ? nullptr : watched->block_of(address);
  if (block == nullptr) return false;
  faults::say("the host touched byte ");
  faults::say(static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->begin));
  faults::say(" of ");
  faults::say(block->bytes);
  faults::say(" of '");
  faults::say(block->label);
  faults::say(block->freed ? "', which was freed\n"
                           : "', which is out of its reach (a GPU's memory); copy through the "
                             "device\n");
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

/// At that place, which loses what it held; null: wherever there is room. Null: there is none.
std::byte* map_pages(std::byte* place, std::size_t bytes, int protection) {
  const int flags =
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place == nullptr ? 0 : MAP_FIXED);
  void* const pages = ::mmap(place, bytes, protection, flags, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<std::byte*>(pages);
}

}  // namespace

std::size_t Block::mapped() const {
  return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

bool Block::holds(const void* address, std::size_t count) const {
  const auto* at = static_cast<const std::byte*>(address);
  return !freed && at >= begin && at <= begin + bytes &&
         count <= static_cast<std::size_t>(begin + bytes - at);
}

std::string Block::describe(const void* address) const {
  return base::format("byte {} of {} of '{}'{}", static_cast<const std::byte*>(address) - begin,
                      bytes, label, freed ? ", which was freed" : "");
}

Block* Memory::allocate(Block block) {
  block.reach = map_pages(nullptr, block.mapped() + page, PROT_READ | PROT_WRITE);
  block.begin = block.kind == Block::Kind::translated
                    ? map_pages(nullptr, block.mapped() + page, PROT_NONE)
                    : block.reach;
  if (block.reach == nullptr || block.begin == nullptr) return nullptr;
  watched = this;
  faults::watch(&name_fault);
  poison(block.reach, block.mapped());
  ::mprotect(block.reach + block.mapped(), page, PROT_NONE);
  auto& kept = blocks_.emplace(block.begin, std::move(block)).first->second;
  if (kept.kind == Block::Kind::device) {
    on_gpus_.insert(&kept);
    protect(kept);
  }
  return &kept;
}

/// The addresses stay taken, so that whoever still uses them is found.
void Memory::free(Block& block) {
  if (block.before_free) std::exchange(block.before_free, nullptr)();
  block.freed = true;
  on_gpus_.erase(&block);
  map_pages(block.reach, block.mapped(), PROT_NONE);
}

Block* Memory::block_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  const auto next = blocks_.upper_bound(at);
  if (next == blocks_.begin()) return nullptr;
  auto& block = std::prev(next)->second;
  return at <= block.begin + block.mapped() ? &block : nullptr;
}

std::size_t Memory::taken_bytes(int gpu) const {
  std::size_t small = 0;
  std::size_t large = 0;
  const auto whole = [](std::size_t bytes) {
    return (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
  };
  for (const auto* block : on_gpus_) {
    if (block->gpu != gpu) continue;
    (block->bytes < small_bytes ? small : large) +=
        block->bytes < small_bytes ? block->mapped() : whole(block->bytes);
  }
  return whole(small) + large;
}

void Memory::protect() const {
  for (const auto* block : on_gpus_) protect(*block);
}

void Memory::protect(const Block& block) const {
  ::mprotect(block.begin, block.mapped(), opened_ > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
}

}  // namespace trireme::testing::simulated_gpu
