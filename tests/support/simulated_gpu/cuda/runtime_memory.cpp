// SPDX-License-Identifier: Apache-2.0
// The runtime's functions for memory.
#include "support/simulated_gpu/cuda/runtime.hpp"

#include <cstring>
#include <vector>

namespace {

using namespace trireme::testing::simulated_gpu;

/// The block of [address, address + bytes), null for memory of the host's own.
const Block* block_with(Runtime& runtime, const void* address, std::size_t bytes) {
  const auto* const block = runtime.memory().block_of(address);
  expect(block == nullptr || block->holds(address, bytes), cudaErrorInvalidValue);
  return block;
}

bool on_gpu(const Block* block) {
  return block != nullptr && block->kind == Block::Kind::device;
}

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
  /// Which of the two the host can touch, and whether the runtime may read or write it whenever.
  bool from_gpu;
  bool to_gpu;
  bool pageable;
};

Copy copy_of(Runtime& runtime, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const auto* const source = block_with(runtime, from, bytes);
  const auto* const target = block_with(runtime, to, bytes);
  const Copy copy{
      to, from, bytes, on_gpu(source), on_gpu(target), source == nullptr || target == nullptr};
  const auto ends = copy.from_gpu
                        ? (copy.to_gpu ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost)
                        : (copy.to_gpu ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost);
  expect(kind == ends || kind == cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection);
  return copy;
}

/// Numbers in the host's own memory are taken at once, and go to the GPU later.
void push_copy(Runtime& runtime, CUstream_st& stream, const Copy& copy) {
  if (copy.pageable && copy.to_gpu && !stream.capture) {
    const auto* const first = static_cast<const std::byte*>(copy.from);
    runtime.push(stream, [copy, staged = std::vector<std::byte>(first, first + copy.bytes)] {
      std::memcpy(copy.to, staged.data(), copy.bytes);
    });
    return;
  }
  runtime.push(stream, [copy] { std::memmove(copy.to, copy.from, copy.bytes); });
}

void finish(Runtime& runtime, CUstream_st& stream) {
  runtime.run_until(stream.queue->mark());
}

cudaError_t allocate(void** address, std::size_t bytes, Block::Kind kind) {
  return call([&](Runtime& runtime) {
    expect(address != nullptr, cudaErrorInvalidValue);
    runtime.expect_no_capture();
    *address = nullptr;
    if (bytes == 0) return;
    const int gpu = this_thread().gpu;
    const auto taken = runtime.memory().taken_bytes(gpu) + Runtime::context_bytes;
    expect(kind == Block::Kind::pinned || bytes <= Runtime::total_bytes - taken,
           cudaErrorMemoryAllocation);
    auto* const block = runtime.memory().allocate({
        .bytes = bytes,
        .kind = kind,
        .gpu = gpu,
        .label = kind == Block::Kind::device ? "device memory" : "pinned memory",
    });
    expect(block != nullptr, cudaErrorMemoryAllocation);
    *address = block->begin;
  });
}

cudaError_t release(void* address, Block::Kind kind) {
  return call([&](Runtime& runtime) {
    if (address == nullptr) return;
    runtime.expect_no_capture();
    auto* const block = runtime.memory().block_of(address);
    expect(block != nullptr && block->begin == address && !block->freed && block->kind == kind,
           cudaErrorInvalidValue);
    // Work that was issued before may use it.
    runtime.run_all();
    runtime.memory().free(*block);
  });
}

cudaError_t set(void* address, int value, std::size_t bytes, cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    auto& stream = runtime.stream_of(handle);
    expect(on_gpu(block_with(runtime, address, bytes)), cudaErrorInvalidValue);
    runtime.push(stream, [=] { std::memset(address, value, bytes); });
  });
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return allocate(address, bytes, Block::Kind::device);
}

cudaError_t cudaFree(void* address) {
  return release(address, Block::Kind::device);
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  return allocate(address, bytes, Block::Kind::pinned);
}

cudaError_t cudaFreeHost(void* address) {
  return release(address, Block::Kind::pinned);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call([&](Runtime& runtime) {
    expect(free != nullptr && total != nullptr, cudaErrorInvalidValue);
    *total = Runtime::total_bytes;
    *free = Runtime::total_bytes - Runtime::context_bytes -
            runtime.executables() * Runtime::graph_bytes -
            runtime.memory().taken_bytes(this_thread().gpu);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t handle) {
  return call([&](Runtime& runtime) {
    auto& stream = runtime.stream_of(handle);
    if (bytes == 0) return;
    const auto copy = copy_of(runtime, to, from, bytes, kind);
    push_copy(runtime, stream, copy);
    // To memory of the host's own it returns when the copy is done.
    if (copy.pageable && !copy.to_gpu && !stream.capture) finish(runtime, stream);
  });
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call([&](Runtime& runtime) {
    runtime.expect_no_capture();
    auto& stream = runtime.stream_of(nullptr);
    if (bytes == 0) return;
    const auto copy = copy_of(runtime, to, from, bytes, kind);
    push_copy(runtime, stream, copy);
    // From memory of the host's own to a GPU it returns when that may be written again, and
    // between places of a GPU at once.
    const bool staged = copy.pageable && copy.to_gpu;
    const bool inside = copy.from_gpu && copy.to_gpu;
    if (!staged && !inside) finish(runtime, stream);
  });
}

cudaError_t cudaMemsetAsync(void* address, int value, std::size_t bytes, cudaStream_t handle) {
  return set(address, value, bytes, handle);
}

cudaError_t cudaMemset(void* address, int value, std::size_t bytes) {
  return set(address, value, bytes, nullptr);
}

}  // extern "C"
