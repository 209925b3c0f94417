// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ordered_sum.hpp"

#include "trireme/base/philox.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace trireme;
using comm::Instructions;
using comm::ReduceOp;
using device::Bf16;
using device::DType;

namespace {

/// Those that this machine has.
std::vector<Instructions> available() {
  std::vector<Instructions> all{Instructions::portable};
  if (comm::best_instructions() >= Instructions::avx2) all.push_back(Instructions::avx2);
  if (comm::best_instructions() >= Instructions::avx512) all.push_back(Instructions::avx512);
  return all;
}

/// Numbers of all sizes with the special ones among them.
float awkward(int input, std::int64_t index) {
  const auto bits =
      base::philox(11, static_cast<std::uint64_t>(input), static_cast<std::uint64_t>(index));
  switch (bits[3] % 61) {
    case 0:
      return std::numeric_limits<float>::infinity();
    case 1:
      return std::numeric_limits<float>::quiet_NaN();
    case 2:
      return -0.0F;
    case 3:
      return std::numeric_limits<float>::max();
    default:
      return (base::uniform_from_bits(bits[0]) - 0.5F) * std::exp2f(float(bits[1] % 40U));
  }
}

template <typename T>
std::vector<const void*> pointers(const std::vector<std::vector<T>>& inputs) {
  std::vector<const void*> list;
  for (const auto& input : inputs) list.push_back(input.data());
  return list;
}

}  // namespace

TEST_CASE("fp32 sums are in order and alike from every instruction set") {
  for (const int input_count : {1, 2, 3, 4, 7}) {
    for (const std::int64_t count : {0, 1, 15, 31, 32, 63, 64, 65, 1000, 1027}) {
      std::vector<std::vector<float>> inputs;
      std::vector<float> expected;
      for (int input = 0; input < input_count; ++input) {
        inputs.emplace_back();
        for (std::int64_t i = 0; i < count; ++i) inputs.back().push_back(awkward(input, i));
      }
      for (std::int64_t i = 0; i < count; ++i) {
        float sum = awkward(0, i);
        for (int input = 1; input < input_count; ++input) sum += awkward(input, i);
        expected.push_back(sum);
      }
      for (const auto instructions : available()) {
        CAPTURE(input_count, count, comm::name(instructions));
        std::vector<float> out(static_cast<std::size_t>(count), 77.0F);
        comm::reduce_in_order(instructions, ReduceOp::sum, DType::f32, pointers(inputs), out.data(),
                              count);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const bool both_nan = std::isnan(out[i]) && std::isnan(expected[i]);
          if (!both_nan &&
              std::bit_cast<std::uint32_t>(out[i]) != std::bit_cast<std::uint32_t>(expected[i])) {
            FAIL("element " << i << ": " << out[i] << " instead of " << expected[i]);
          }
        }
      }
    }
  }
}

TEST_CASE("bf16 sums round once, alike from every instruction set") {
  for (const int input_count : {1, 2, 3, 5}) {
    for (const std::int64_t count : {0, 1, 15, 16, 31, 32, 33, 999}) {
      std::vector<std::vector<Bf16>> inputs;
      std::vector<Bf16> expected;
      for (int input = 0; input < input_count; ++input) {
        inputs.emplace_back();
        for (std::int64_t i = 0; i < count; ++i) {
          inputs.back().push_back(device::to_bf16(awkward(input, i)));
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        float sum = device::to_float(inputs[0][at]);
        for (int input = 1; input < input_count; ++input) {
          sum += device::to_float(inputs[static_cast<std::size_t>(input)][at]);
        }
        expected.push_back(device::to_bf16(sum));
      }
      for (const auto instructions : available()) {
        CAPTURE(input_count, count, comm::name(instructions));
        std::vector<Bf16> out(static_cast<std::size_t>(count), Bf16{77});
        comm::reduce_in_order(instructions, ReduceOp::sum, DType::bf16, pointers(inputs),
                              out.data(), count);
        for (std::size_t i = 0; i < out.size(); ++i) {
          const bool both_nan =
              std::isnan(device::to_float(out[i])) && std::isnan(device::to_float(expected[i]));
          if (!both_nan && out[i].bits != expected[i].bits) {
            FAIL("element " << i << ": " << out[i].bits << " instead of " << expected[i].bits);
          }
        }
      }
    }
  }
}

TEST_CASE("a sum may go into any of its inputs") {
  for (const auto instructions : available()) {
    for (std::size_t into = 0; into < 3; ++into) {
      CAPTURE(comm::name(instructions), into);
      std::vector<std::vector<float>> inputs(3, std::vector<float>(133));
      for (std::size_t input = 0; input < 3; ++input) {
        for (std::size_t i = 0; i < 133; ++i) inputs[input][i] = float(input * 1000 + i);
      }
      comm::reduce_in_order(instructions, ReduceOp::sum, DType::f32, pointers(inputs),
                            inputs[into].data(), 133);
      for (std::size_t i = 0; i < 133; ++i) CHECK(inputs[into][i] == float(3000 + 3 * i));
    }
  }
}

TEST_CASE("a maximum keeps a NaN wherever it stands") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> inputs{{1, nan, 3, -0.0F}, {2, 5, nan, 0.0F}};
  std::vector<float> out(4);
  comm::reduce_in_order(ReduceOp::max, DType::f32, pointers(inputs), out.data(), 4);
  CHECK(out[0] == 2);
  CHECK(std::isnan(out[1]));
  CHECK(std::isnan(out[2]));
  CHECK(out[3] == 0);
}
