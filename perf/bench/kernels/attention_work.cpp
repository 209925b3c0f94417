// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"

#include "kernel_work.hpp"

#include <cmath>
#include <cstring>

namespace trireme::bench {
namespace {

using device::DType;
using device::Kernels;
using device::Tensor;

device::AttentionBackward tensors_of(Kernels& kernels, Memory& memory, DType dtype,
                                     const AttentionShape& shape) {
  const auto take = [&](std::int64_t heads, std::uint64_t seed) {
    const auto tensor =
        memory.arena.allocate(dtype, {shape.batch, shape.seq, heads, shape.head_dim});
    set_random(kernels, tensor, seed);
    return tensor;
  };
  device::Attention forward;
  forward.q = take(shape.heads, 1);
  forward.k = take(shape.kv_heads, 2);
  forward.v = take(shape.kv_heads, 3);
  forward.out = take(shape.heads, 4);
  forward.lse = memory.arena.allocate(DType::f32, {shape.batch, shape.heads, shape.seq});
  forward.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return {forward, take(shape.heads, 5), take(shape.heads, 6), take(shape.kv_heads, 7),
          take(shape.kv_heads, 8)};
}

}  // namespace

void set_random(Kernels& kernels, const Tensor& tensor, std::uint64_t seed) {
  TRIREME_EXPECT(tensor.dtype() != DType::i32, "random numbers are for floats");
  // Splitmix64 (Steele et al. 2014): a hundred times the speed of the trainer's generator.
  std::uint64_t state = seed;
  const auto next = [&] {
    auto bits = state += 0x9e3779b97f4a7c15U;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  };
  std::vector<std::byte> values(tensor.byte_count());
  const auto size = device::size_of(tensor.dtype());
  for (std::size_t at = 0; at < values.size(); at += size) {
    const float value = static_cast<float>(next() >> 40U) * 0x1p-23F - 1.0F;
    // bf16 is a float's upper half.
    std::memcpy(&values[at], reinterpret_cast<const std::byte*>(&value) + sizeof(float) - size,
                size);
  }
  kernels.device().copy_in(values.data(), tensor);
  kernels.device().synchronize();
}

std::vector<KernelWork> attention_work(Kernels& kernels, Memory& memory, DType dtype,
                                       const std::vector<AttentionShape>& shapes,
                                       const std::string& by) {
  std::vector<KernelWork> list;
  for (const auto& shape : shapes) {
    const auto backward = tensors_of(kernels, memory, dtype, shape);
    const auto forward = backward.forward;
    const double gemm = static_cast<double>(shape.batch * shape.heads * shape.seq) *
                        static_cast<double>(shape.seq * shape.head_dim);
    list.push_back({by + "attention forward, " + shape.name, dtype, 0,
                    [=, &kernels](auto) { kernels.issue(forward); }, 2 * gemm, &kernels});
    list.push_back({by + "attention backward, " + shape.name, dtype, 0,
                    [=, &kernels](auto) { kernels.issue(backward); }, 5 * gemm, &kernels});
  }
  return list;
}

}  // namespace trireme::bench
