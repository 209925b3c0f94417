// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/tensor.hpp"

#include "device/rows.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace trireme::device;

namespace {

struct Numbered {
  std::vector<float> memory = std::vector<float>(2 * 3 * 20);
  Tensor tensor{memory.data(), DType::f32, {2, 3, 20}};
  Numbered() { std::iota(memory.begin(), memory.end(), 0.0F); }
};

}  // namespace

TEST_CASE("a tensor is row-major and knows its size") {
  const Numbered numbers;
  CHECK(numbers.tensor.rank() == 3);
  CHECK(numbers.tensor.stride(0) == 60);
  CHECK(numbers.tensor.stride(1) == 20);
  CHECK(numbers.tensor.stride(2) == 1);
  CHECK(numbers.tensor.element_count() == 120);
  CHECK(numbers.tensor.byte_count() == 480);
  CHECK(numbers.tensor.contiguous());
  CHECK(numbers.tensor.text() == "f32 [2, 3, 20]");
  CHECK_FALSE(Tensor());
  CHECK(Tensor().element_count() == 0);
}

TEST_CASE("the slices of a fused matrix are its columns by head") {
  const Numbered numbers;
  // 20 columns: 3 query heads, 1 key head, 1 value head of 4.
  const auto key = numbers.tensor.slice(2, 12, 4).split(2, 4);
  CHECK(key.text() == "f32 [2, 3, 1, 4]");
  CHECK(key.f32()[key.stride(0) + 2 * key.stride(1) + 1] == 60 + 40 + 12 + 1);
  const auto query = numbers.tensor.slice(2, 0, 12).split(2, 4);
  CHECK(query.text() == "f32 [2, 3, 3, 4]");
  CHECK(query.stride(2) == 4);
  CHECK(query.stride(3) == 1);
  CHECK_FALSE(query.contiguous());
  CHECK(numbers.tensor.slice(0, 1, 1).contiguous());
}

TEST_CASE("a wrong slice, shape, split or type is a broken contract") {
  const Numbered numbers;
  CHECK_THROWS(numbers.tensor.slice(1, 2, 2));
  CHECK_THROWS(numbers.tensor.slice(1, -1, 2));
  CHECK_THROWS(numbers.tensor.slice(3, 0, 1));
  CHECK_THROWS(numbers.tensor.reshape({7, 17}));
  CHECK_THROWS(numbers.tensor.slice(2, 0, 4).reshape({24}));
  CHECK_THROWS(numbers.tensor.split(2, 3));
  CHECK_THROWS(numbers.tensor.split(2, 0));
  CHECK_THROWS(numbers.tensor.bf16());
  CHECK_THROWS(numbers.tensor.dim(3));
  CHECK_THROWS(Tensor(nullptr, DType::f32, {-1}));
  CHECK(numbers.tensor.reshape({6, 20}).f32()[0] == 0.0F);
}

TEST_CASE("rows of a slice are found by their number") {
  const Numbered numbers;
  const auto query = numbers.tensor.slice(2, 4, 12).split(2, 4);  // [2, 3, 3, 4]
  const Rows rows(query);
  CHECK(rows.count() == 18);
  CHECK(rows.width() == 4);
  CHECK_FALSE(rows.evenly_spaced());
  std::int64_t row = 0;
  for (std::int64_t a = 0; a < 6; ++a) {
    for (std::int64_t head = 0; head < 3; ++head) {
      CHECK(query.f32()[rows.offset(row++)] == static_cast<float>(20 * a + 4 + 4 * head));
    }
  }
  const Rows slice(numbers.tensor.slice(2, 4, 12));
  CHECK(slice.evenly_spaced());
  CHECK(slice.stride() == 20);
  CHECK(slice.offset(5) == 100);
  CHECK(Rows(numbers.tensor.reshape({120})).count() == 1);
}

TEST_CASE("rows of every slice are where its strides say") {
  const Numbered numbers;
  const auto slice = numbers.tensor.slice(0, 0, 2).slice(1, 1, 2).slice(2, 3, 6).split(2, 3);
  const Rows rows(slice);
  std::int64_t row = 0;
  for (std::int64_t a = 0; a < slice.dim(0); ++a) {
    for (std::int64_t b = 0; b < slice.dim(1); ++b) {
      for (std::int64_t c = 0; c < slice.dim(2); ++c) {
        CHECK(rows.offset(row++) ==
              a * slice.stride(0) + b * slice.stride(1) + c * slice.stride(2));
      }
    }
  }
}

TEST_CASE("bf16 rounds to nearest, ties to even, and keeps NaN and infinity") {
  CHECK(to_float(to_bf16(1.0F)) == 1.0F);
  CHECK(to_bf16(0x1.01p0F).bits == 0x3F80);  // a tie between 1 and the next: to even
  CHECK(to_bf16(0x1.03p0F).bits == 0x3F82);  // a tie: to even, upwards
  CHECK(to_bf16(0x1.010002p0F).bits == 0x3F81);
  CHECK(std::isnan(to_float(to_bf16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::isinf(to_float(to_bf16(std::numeric_limits<float>::infinity()))));
  CHECK(std::isinf(to_float(to_bf16(std::numeric_limits<float>::max()))));
}
