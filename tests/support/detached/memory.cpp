// SPDX-License-Identifier: Apache-2.0
#include "support/detached/memory.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "support/fault_names.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace trireme::testing::detached {
namespace {

constexpr std::size_t page = 4096;

struct Block {
  std::atomic<std::byte*> begin{nullptr};
  std::size_t bytes = 0;       // that tensors may use
  std::byte* reach = nullptr;  // where the same bytes can be reached
  std::size_t mapped = 0;      // whole pages; one more follows that nobody can touch
  device::Purpose purpose = device::Purpose::workspace;
  std::function<void()> before_release;
};

/// A fixed place: a signal handler looks here.
std::array<Block, 4096>& blocks() {
  static std::array<Block, 4096> all;
  return all;
}

Block* block_of(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  for (auto& block : blocks()) {
    const auto* begin = block.begin.load();
    // The end counts: tensors without elements may lie there.
    if (begin != nullptr && at >= begin && at <= begin + block.mapped) return &block;
  }
  return nullptr;
}

/// Whether the address is a device's; says so.
bool name_fault(const void* address) {
  const auto* block = block_of(address);
  if (block == nullptr) return false;
  faults::say("the host touched byte ");
  faults::say(
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - block->begin.load()));
  faults::say(" of ");
  faults::say(block->bytes);
  faults::say(" of '");
  faults::say(device::name(block->purpose));
  faults::say(
      "', which lie on a device (a GPU's memory is out of its reach); copy through "
      "device::Device\n");
  return true;
}

std::byte* map_pages(std::size_t bytes, int protection) {
  void* block =
      ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED) {
    base::throw_errno(base::ExitCode::internal, "cannot map detached memory", errno);
  }
  return static_cast<std::byte*>(block);
}

void release(std::byte* begin, std::size_t /*bytes*/) {
  auto* block = block_of(begin);
  block->before_release();
  block->begin = nullptr;
  ::munmap(begin, block->mapped + page);
  ::munmap(block->reach, block->mapped + page);
  block->before_release = nullptr;
}

/// Bytes from the first element to the end of the last.
std::size_t extent(const device::Tensor& tensor) {
  if (tensor.element_count() == 0) return 0;
  std::int64_t last = 0;
  for (int index = 0; index < tensor.rank(); ++index) {
    last += (tensor.dim(index) - 1) * tensor.stride(index);
  }
  return static_cast<std::size_t>(last + 1) * device::size_of(tensor.dtype());
}

}  // namespace

device::Arena take(device::Purpose purpose, std::size_t capacity_bytes,
                   std::function<void()> before_release) {
  const auto free = std::find_if(blocks().begin(), blocks().end(),
                                 [](const Block& block) { return block.begin == nullptr; });
  if (free == blocks().end()) throw DetachedFault("too many arenas of detached devices");
  faults::watch(&name_fault);
  free->mapped = (std::max<std::size_t>(capacity_bytes, 1) + page - 1) / page * page;
  free->bytes = capacity_bytes;
  free->purpose = purpose;
  free->before_release = std::move(before_release);
  free->reach = map_pages(free->mapped + page, PROT_READ | PROT_WRITE);
  ::mprotect(free->reach + free->mapped, page, PROT_NONE);
  std::memset(free->reach, 0xFF, free->mapped);
  auto* const begin = map_pages(free->mapped + page, PROT_NONE);
  free->begin = begin;
  return device::Arena::adopt(purpose, begin, capacity_bytes, &release);
}

device::Tensor behind(const device::Tensor& tensor, const char* operation, const char* operand) {
  if (!tensor) return tensor;
  const auto* block = block_of(tensor.raw());
  if (block == nullptr) {
    throw DetachedFault(
        base::format("{}: {} ({}) lies in host memory, which a GPU's kernels do "
                     "not reach",
                     operation, operand, tensor.text()));
  }
  const auto offset =
      static_cast<std::size_t>(static_cast<std::byte*>(tensor.raw()) - block->begin.load());
  if (offset + extent(tensor) > block->bytes) {
    throw DetachedFault(base::format("{}: {} ({}) at byte {} leaves the {} bytes of '{}'",
                                     operation, operand, tensor.text(), offset, block->bytes,
                                     device::name(block->purpose)));
  }
  return tensor.moved_to(block->reach + offset);
}

bool owns(const void* address) {
  return block_of(address) != nullptr;
}

}  // namespace trireme::testing::detached
