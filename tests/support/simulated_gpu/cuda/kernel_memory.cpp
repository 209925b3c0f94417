// SPDX-License-Identifier: Apache-2.0
// The GPU's memory as kernels on the executor reach it: inside of blocks, aligned, not freed.
#include "trireme/base/format.hpp"

#include "support/simulated_gpu/cuda/runtime.hpp"

#include <cstdint>

namespace trireme::testing::simulated_gpu {
namespace {

using device::simt::Access;
using device::simt::Executor;

class KernelBlock final : public device::simt::Target {
 public:
  explicit KernelBlock(const Block& block) : block_(block) {}

  void* check(const void* origin, std::int64_t index, int count, std::size_t bytes, Access access,
              const device::simt::Place& where) override {
    const auto address = static_cast<std::uintptr_t>(reinterpret_cast<std::intptr_t>(origin) +
                                                     index * static_cast<std::int64_t>(bytes));
    auto* const place = reinterpret_cast<std::byte*>(address);
    const auto whole = bytes * static_cast<std::size_t>(count);
    const char* verb = access == Access::read ? "reads" : "writes";
    if (!block_.holds(place, whole)) {
      Executor::here().fail(where, base::format("{} {} bytes out of bounds: {}", verb, whole,
                                                block_.describe(place)));
    }
    if (address % whole != 0) {
      Executor::here().fail(where,
                            base::format("{} {} bytes at an address that is not a multiple of them "
                                         "(misaligned): {}",
                                         verb, whole, block_.describe(place)));
    }
    return place;
  }

 private:
  const Block& block_;
};

class KernelMemory final : public device::simt::AddressSpace {
 public:
  explicit KernelMemory(Memory& memory) : memory_(memory) {}

  device::simt::Target* find(const void* address) override {
    if (address == nullptr) return nullptr;
    const auto* const block = memory_.block_of(address);
    if (block == nullptr || block->freed) {
      throw device::simt::Fault("a kernel is given memory that its GPU does not have: " +
                                describe(address));
    }
    if (block->kind == Block::Kind::device && block->gpu != this_thread().gpu) {
      throw device::simt::Fault("a kernel is given memory of another GPU: " + describe(address));
    }
    return &blocks_.try_emplace(block, *block).first->second;
  }
  std::string describe(const void* address) const override {
    const auto* const block = memory_.block_of(address);
    return block == nullptr ? "memory of the host" : block->describe(address);
  }

 private:
  Memory& memory_;
  std::map<const Block*, KernelBlock> blocks_;
};

}  // namespace

std::unique_ptr<device::simt::AddressSpace> make_kernel_memory(Memory& memory) {
  return std::make_unique<KernelMemory>(memory);
}

}  // namespace trireme::testing::simulated_gpu
