// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/measure.hpp"

#include "trireme/base/philox.hpp"
#include "trireme/device/arena.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace trireme::device {
namespace {

constexpr std::array all_passes{LinearPass::forward, LinearPass::backward_input,
                                LinearPass::backward_weight};

/// The operands of all three GEMMs.
struct Operands {
  Operands(Arena& arena, DType dtype, const GemmShape& shape)
      : x(arena.allocate(dtype, {shape.rows, shape.in})),
        w(arena.allocate(dtype, {shape.out, shape.in})),
        y(arena.allocate(dtype, {shape.rows, shape.out})),
        dw(arena.allocate(DType::f32, {shape.out, shape.in})) {}

  Tensor x;
  Tensor w;
  Tensor y;
  Tensor dw;
};

void multiply(Kernels& kernels, LinearPass pass, const Operands& operands) {
  switch (pass) {
    case LinearPass::forward:
      return kernels.issue(LinearForward{.x = operands.x, .w = operands.w, .y = operands.y});
    case LinearPass::backward_input:
      return kernels.issue(LinearBackwardInput{operands.y, operands.w, operands.x});
    case LinearPass::backward_weight:
      return kernels.issue(
          LinearBackwardWeight{.dy = operands.y, .x = operands.x, .dw = operands.dw});
  }
}

}  // namespace

const char* name(LinearPass pass) {
  switch (pass) {
    case LinearPass::forward:
      return "forward";
    case LinearPass::backward_input:
      return "backward_input";
    case LinearPass::backward_weight:
      return "backward_weight";
  }
  return "?";
}

void fill_random(Kernels& kernels, const Tensor& tensor, std::uint64_t stream, float scale) {
  expect_contiguous(tensor);
  TRIREME_EXPECT(tensor.dtype() != DType::i32, "random numbers are for floats");
  // A prime: no two rows are the same.
  constexpr std::size_t most_numbers = 65521;
  const auto size = size_of(tensor.dtype());
  const auto count = static_cast<std::size_t>(tensor.element_count());
  std::vector<std::byte> numbers(count * size);
  const auto drawn = std::min(count, most_numbers);
  for (std::size_t index = 0; index < drawn; ++index) {
    const float value = scale * base::philox_normal(1, stream, index);
    if (tensor.dtype() == DType::bf16) {
      const auto narrow = to_bf16(value);
      std::memcpy(&numbers[index * size], &narrow, size);
    } else {
      std::memcpy(&numbers[index * size], &value, size);
    }
  }
  for (std::size_t begin = drawn * size; begin < numbers.size(); begin += drawn * size) {
    std::memcpy(&numbers[begin], numbers.data(), std::min(drawn * size, numbers.size() - begin));
  }
  kernels.device().copy_in(numbers.data(), tensor);
  kernels.device().synchronize();
}

std::vector<GemmTime> measure_gemms(Kernels& kernels, DType dtype, const GemmShape& shape,
                                    int repeats) {
  TRIREME_EXPECT(repeats > 0, "a measurement needs a repeat");
  auto measuring = Arena::measuring(Purpose::workspace);
  const Operands measured(measuring, dtype, shape);
  auto arena = kernels.device().arena(Purpose::workspace, measuring.used_bytes());
  const Operands operands(arena, dtype, shape);
  kernels.issue(Fill{operands.dw, 0});
  constexpr float scale = 0.1F;
  fill_random(kernels, operands.w, 1, scale);
  std::vector<GemmTime> results;
  for (const auto pass : all_passes) {
    std::vector<double> seconds;
    fill_random(kernels, operands.x, 2, scale);
    if (pass != LinearPass::forward) fill_random(kernels, operands.y, 3, scale);
    // The first call prepares and is not counted.
    for (int repeat = -1; repeat < repeats; ++repeat) {
      kernels.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      multiply(kernels, pass, operands);
      kernels.synchronize();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      if (repeat >= 0) seconds.push_back(took.count());
    }
    std::sort(seconds.begin(), seconds.end());
    results.push_back({pass, dtype, shape, seconds[seconds.size() / 2], seconds.front()});
  }
  return results;
}

}  // namespace trireme::device
