// SPDX-License-Identifier: Apache-2.0
#include "comm/core/exact_data.hpp"

#include <catch2/catch.hpp>

#include <vector>

using trireme::comm::ExactData;
using trireme::device::Bf16;
using trireme::device::DType;
using trireme::device::Tensor;

namespace {

Tensor tensor_of(std::vector<float>& values) {
  return {values.data(), DType::f32, {static_cast<std::int64_t>(values.size())}};
}

}  // namespace

TEST_CASE("exact data of a rank are whole numbers that bf16 holds") {
  for (const int rank : {0, 1, 7, 511}) {
    std::vector<float> floats(1000);
    std::vector<Bf16> halves(1000);
    const Tensor narrow(halves.data(), DType::bf16, {1000});
    ExactData::of_rank(rank).fill(tensor_of(floats));
    ExactData::of_rank(rank).fill(narrow);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      REQUIRE(floats[i] == trireme::device::to_float(halves[i]));
      REQUIRE(floats[i] == static_cast<float>((i + 31U * static_cast<unsigned>(rank)) % 251U));
    }
  }
}

TEST_CASE("exact sums are those of the ranks, and one wrong element is found") {
  std::vector<float> sum(777, 0.0F);
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> one(777);
    ExactData::of_rank(rank).fill(tensor_of(one), 40);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  const auto due = ExactData::sum_of(3);
  CHECK_FALSE(due.compare(tensor_of(sum), 40));
  // Put one place too far, the same numbers are wrong.
  CHECK(due.compare(tensor_of(sum), 41));
  sum[700] += 1.0F;
  const auto difference = due.compare(tensor_of(sum), 40);
  REQUIRE(difference);
  CHECK(difference->index == 700);
  CHECK(difference->found == difference->due + 1.0F);
}

TEST_CASE("poison is never what is due") {
  std::vector<float> values(500);
  ExactData::poison().fill(tensor_of(values));
  for (int ranks = 1; ranks < 5; ++ranks) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Tensor one(values.data() + i, DType::f32, {1});
      REQUIRE(ExactData::sum_of(ranks).compare(one, static_cast<std::int64_t>(i)));
    }
  }
}
