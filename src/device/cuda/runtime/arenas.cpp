// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/device/arena.hpp"

#include "device/cuda/runtime/call.hpp"
#include "device/cuda/runtime/stream.hpp"

#include <algorithm>

namespace trireme::device {
namespace {

template <typename Allocate>
std::byte* block_for(Purpose purpose, std::size_t bytes, const char* where,
                     const Allocate& allocate) {
  try {
    return static_cast<std::byte*>(allocate(std::max<std::size_t>(bytes, 1)).release());
  } catch (const base::Error& error) {
    throw base::Error(error.code(),
                      base::format("cannot take {} of {} for {} ({}); use more ranks, a smaller "
                                   "micro-batch or activation checkpointing",
                                   base::bytes_text(bytes), where, name(purpose), error.what()));
  }
}

}  // namespace

Arena Arena::cuda(Purpose purpose, std::size_t capacity_bytes) {
  return {purpose, block_for(purpose, capacity_bytes, "the GPU's memory", cuda::allocate_device),
          capacity_bytes,
          [](std::byte* block, std::size_t) { auto owner = cuda::DeviceMemory::adopt(block); }};
}

Arena Arena::pinned(Purpose purpose, std::size_t capacity_bytes) {
  return {purpose, block_for(purpose, capacity_bytes, "pinned host memory", cuda::allocate_pinned),
          capacity_bytes,
          [](std::byte* block, std::size_t) { auto owner = cuda::PinnedMemory::adopt(block); }};
}

}  // namespace trireme::device
