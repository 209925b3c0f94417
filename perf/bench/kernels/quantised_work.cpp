// SPDX-License-Identifier: Apache-2.0
#include "kernel_work.hpp"

namespace trireme::bench {

using device::DType;
using device::Kernels;
using device::Quantised;
using device::Tensor;

std::vector<KernelWork> quantise_work(Kernels& kernels, Memory& memory, DType dtype,
                                      const Shapes& shapes) {
  // Copies of one activation, taken in turn.
  constexpr std::int64_t sets = 16;
  const auto numbers = memory.arena.allocate(dtype, {sets * shapes.rows, shapes.hidden});
  const auto codes = memory.arena.allocate(DType::e4m3, {sets * shapes.rows, shapes.hidden});
  const auto scales = memory.arena.allocate(DType::f32, {2});
  const auto magnitude = scales.slice(0, 0, 1);
  const auto unscale = scales.slice(0, 1, 1);
  const auto part = [rows = shapes.rows](const Tensor& whole, std::int64_t call) {
    return whole.slice(0, call % sets * rows, rows);
  };
  set_random(kernels, part(numbers, 0), 1);
  for (std::int64_t set = 1; set < sets; ++set)
    kernels.issue(device::Copy{part(numbers, 0), part(numbers, set)});
  kernels.issue(device::LargestMagnitude{numbers, magnitude});
  const auto count = shapes.rows * shapes.hidden;
  const auto bytes = count * static_cast<std::int64_t>(device::size_of(dtype));
  return {{"largest magnitude", dtype, bytes,
           [=, &kernels](auto call) {
             kernels.issue(device::LargestMagnitude{part(numbers, call), magnitude});
           }},
          {"quantise to e4m3", dtype, bytes + count, [=, &kernels](auto call) {
             kernels.issue(
                 device::Quantise{part(numbers, call), magnitude, {part(codes, call), unscale}});
           }}};
}

KernelWork fp8_gemm_work(Kernels& kernels, Memory& memory, std::int64_t side) {
  const auto operand = [&](std::uint64_t seed) {
    const auto numbers = memory.arena.allocate(DType::bf16, {side, side});
    const auto magnitude = memory.arena.allocate(DType::f32, {1});
    const Quantised copy{memory.arena.allocate(DType::e4m3, {side, side}),
                         memory.arena.allocate(DType::f32, {1})};
    set_random(kernels, numbers, seed);
    kernels.issue(device::LargestMagnitude{numbers, magnitude});
    kernels.issue(device::Quantise{numbers, magnitude, copy});
    return copy;
  };
  const auto x = operand(1);
  const auto w = operand(2);
  const auto y = memory.arena.allocate(DType::bf16, {side, side});
  const auto length = static_cast<double>(side);
  return {"product of FP8 copies", DType::bf16, 0,
          [=, &kernels](auto) {
            kernels.issue(device::LinearForwardQuantised{x, w, {}, y});
          },
          2 * length * length * length};
}

}  // namespace trireme::bench
