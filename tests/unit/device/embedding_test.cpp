// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::test;

TEST_CASE("an embedding takes rows of its part of the vocabulary and zeros elsewhere") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for_each_backend([&](Kernels& kernels) {
    TestTensor tokens(DType::i32, {6});
    TestTensor table(dtype, {3, 2});
    TestTensor out(dtype, {6, 2}, spread);
    tokens.set_integers({10, 12, 9, 13, 11, -1});
    table.set({1, 2, 3, 4, 5, 6});
    kernels.issue(EmbeddingForward{tokens, table, 10, out});
    CHECK(out.values() == std::vector<float>{1, 2, 5, 6, 0, 0, 0, 0, 3, 4, 0, 0});
    CHECK(out.untouched_outside());
  });
}

TEST_CASE("gradients of a token that occurs often are added in its row") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor tokens(DType::i32, {5});
    TestTensor d_out(dtype, {5, 2}, Spread::strided);
    TestTensor d_table(DType::f32, {3, 2}, Spread::strided);
    tokens.set_integers({11, 12, 11, 99, 11});
    d_out.set({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
    d_table.set({0, 0, 100, 0, 0, 0});
    kernels.issue(EmbeddingBackward{tokens, d_out, 10, d_table});
    CHECK(d_table.values() == std::vector<float>{0, 0, 115, 18, 3, 4});
    CHECK(d_table.untouched_outside());
  });
}

TEST_CASE("gradients of a token whose rows lie far apart are all added, each once") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const std::int64_t width = GENERATE(6, 8, 1032);
  constexpr std::int64_t rows = 1101;
  const std::vector<std::pair<std::size_t, std::int32_t>> known{
      {2, 1}, {3, 0}, {3 + 252, 1}, {1023, 0}, {1024, 1}, {1025, 1}, {1100, 0}};
  for_each_backend([&](Kernels& kernels) {
    TestTensor tokens(DType::i32, {rows});
    TestTensor d_out(dtype, {rows, width});
    TestTensor d_table(DType::f32, {2, width});
    // Most tokens are another rank's.
    std::vector<std::int32_t> ids(rows, 7);
    std::vector<float> gradients(static_cast<std::size_t>(rows * width), 1000.0F);
    std::vector<float> expected(static_cast<std::size_t>(2 * width), 0.5F);
    d_table.set(expected);
    for (const auto& [row, token] : known) {
      ids[row] = token;
      for (std::int64_t c = 0; c < width; ++c) {
        const auto value = static_cast<float>((static_cast<std::int64_t>(row) + c) % 64);
        gradients[row * static_cast<std::size_t>(width) + static_cast<std::size_t>(c)] = value;
        expected[static_cast<std::size_t>(token * width + c)] += value;
      }
    }
    tokens.set_integers(ids);
    d_out.set(gradients);
    kernels.issue(EmbeddingBackward{tokens, d_out, 0, d_table});
    CHECK(d_table.values() == expected);
  });
}

TEST_CASE("a split vocabulary adds up to the whole embedding") {
  for_each_backend([](Kernels& kernels) {
    TestTensor tokens(DType::i32, {40});
    TestTensor table(DType::f32, {12, 33});
    TestTensor whole(DType::f32, {40, 33});
    table.randomise(1);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 40; ++i) ids.push_back(i * 7 % 12);
    tokens.set_integers(ids);
    kernels.issue(EmbeddingForward{tokens, table, 0, whole});
    TestTensor low(DType::f32, {40, 33});
    TestTensor high(DType::f32, {40, 33});
    kernels.issue(EmbeddingForward{tokens, table.view().slice(0, 0, 5), 0, low});
    kernels.issue(EmbeddingForward{tokens, table.view().slice(0, 5, 7), 5, high});
    kernels.issue(Add{low, high, low});
    CHECK(low.values() == whole.values());
  });
}

TEST_CASE("positions repeat with every sequence and start where told") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {4, 2}, Spread::strided);
    TestTensor table(dtype, {3, 2});
    x.set({0, 0, 0, 0, 100, 100, 100, 100});
    table.set({1, 2, 3, 4, 5, 6});
    kernels.issue(AddPositions{x, table, 2, 1});
    CHECK(x.values() == std::vector<float>{3, 4, 5, 6, 103, 104, 105, 106});
    CHECK(x.untouched_outside());

    TestTensor d_table(DType::f32, {3, 2});
    d_table.set({1, 0, 0, 0, 9, 9});
    kernels.issue(AddPositionsBackward{x, 2, d_table});
    CHECK(d_table.values() == std::vector<float>{107, 108, 110, 112, 9, 9});
  });
}
