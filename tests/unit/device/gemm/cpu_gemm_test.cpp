// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/cpu_kernels.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Lengths {
  std::int64_t rows;
  std::int64_t in;
  std::int64_t out;
};
const Lengths shapes[] = {
    {530, 40, 520},  // several tiles each way, with rests
    {259, 67, 301},  // nothing divides anything
    {2048, 16, 24},  // one tile, a long sum for the weights
    {1, 300, 1000},  // one new token
    {37, 2050, 96},  // a long sum forward
};

}  // namespace

TEST_CASE("cpu products equal the reference and no number of threads changes a bit") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for (const auto& [rows, in, out] : shapes) {
    INFO("rows " << rows << " in " << in << " out " << out);
    compare(dtype, [&](Kernels& kernels) {
      TestTensor x(dtype, {rows, in}, spread);
      TestTensor w(dtype, {out, in}, spread);
      TestTensor bias(dtype, {out});
      TestTensor y(dtype, {rows, out}, spread);
      TestTensor wide(DType::f32, {rows, out}, spread);
      TestTensor dy(dtype, {rows, out}, spread);
      TestTensor dx(dtype, {rows, in}, spread);
      TestTensor dw(DType::f32, {out, in}, spread);
      x.randomise(1);
      w.randomise(2);
      bias.randomise(3);
      dy.randomise(4);
      dw.randomise(6);
      kernels.issue(LinearForward{x, w, bias, y});
      kernels.issue(LinearForward{x, w, {}, wide});
      kernels.issue(LinearBackwardInput{dy, w, dx});
      kernels.issue(LinearBackwardWeight{dy, x, dw, {}});
      return all({y, wide, dx, dw});
    });
  }
}

TEST_CASE("a product over no rows writes nothing and one over ever new shapes keeps working") {
  const auto kernels = cpu::make_kernels(2, cpu::best_isa());
  TestTensor w(DType::f32, {3, 5});
  w.randomise(1);
  TestTensor none(DType::f32, {0, 5});
  TestTensor out(DType::f32, {0, 3});
  kernels->issue(LinearForward{none, w, {}, out});
  CHECK(out.untouched_outside());
  TestTensor dw(DType::f32, {3, 5});
  dw.randomise(2);
  const auto before = dw.values();
  kernels->issue(LinearBackwardWeight{out, none, dw, {}});
  CHECK(dw.values() == before);
  // More forms than are kept.
  const auto reference = make_reference_kernels();
  for (std::int64_t rows = 1; rows < 1100; ++rows) {
    TestTensor x(DType::f32, {rows, 5});
    TestTensor y(DType::f32, {rows, 3});
    x.randomise(static_cast<std::uint64_t>(rows));
    kernels->issue(LinearForward{x, w, {}, y});
    if (rows % 100 != 0) continue;
    TestTensor expected(DType::f32, {rows, 3});
    reference->issue(LinearForward{x, w, {}, expected});
    REQUIRE(relative_error(y.values(), expected.values()) < 1e-5);
  }
}

TEST_CASE("a row of a cpu product has the same bits among however many others") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto kernels = cpu::make_kernels(1, cpu::best_isa());
  const Lengths products[] = {{24, 48, 160},  {36, 40, 24},    {512, 256, 768},  {771, 300, 96},
                              {64, 16, 97},   {1536, 64, 36},  {1024, 2050, 40}, {90, 1000, 513},
                              {33, 8192, 64}, {6, 4096, 1024}, {2048, 4096, 24}, {130, 3000, 130}};
  for (const auto& [rows, in, out] : products) {
    TestTensor x(dtype, {rows, in});
    TestTensor w(dtype, {out, in});
    TestTensor bias(dtype, {out});
    TestTensor whole(dtype, {rows, out});
    x.randomise(1);
    w.randomise(2);
    bias.randomise(3);
    kernels->issue(LinearForward{x, w, bias, whole});
    for (const auto first : {rows / 2, (rows + 2) / 3, rows / 3 + 1}) {
      CAPTURE(rows, in, out, first);
      TestTensor parts(dtype, {rows, out});
      const auto multiply = [&](std::int64_t begin, std::int64_t count) {
        kernels->issue(LinearForward{x.view().slice(0, begin, count), w, bias,
                                     parts.view().slice(0, begin, count)});
      };
      multiply(0, first);
      multiply(first, rows - first);
      CHECK(parts.values() == whole.values());
    }
  }
}

// The sum over rows is blocked by the shape of the result.
TEST_CASE("half of a cpu weight gradient is that of the whole, but for rounding") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto kernels = cpu::make_kernels(1, cpu::best_isa());
  const Lengths products[] = {{24, 48, 80}, {36, 40, 50},   {512, 256, 1536}, {771, 300, 98},
                              {64, 16, 97}, {2048, 64, 36}, {4096, 24, 40},   {90, 1000, 513}};
  for (const auto& [rows, in, out] : products) {
    CAPTURE(rows, in, out);
    TestTensor x(dtype, {rows, in});
    TestTensor dy(dtype, {rows, out});
    TestTensor whole(DType::f32, {out, in});
    TestTensor whole_bias(DType::f32, {out});
    TestTensor halves(DType::f32, {out, in});
    TestTensor halves_bias(DType::f32, {out});
    x.randomise(1);
    dy.randomise(2);
    for (auto* sums : {&whole, &halves}) sums->randomise(3);
    for (auto* sums : {&whole_bias, &halves_bias}) sums->randomise(4);
    kernels->issue(LinearBackwardWeight{dy, x, whole, whole_bias});
    const auto add = [&](std::int64_t begin, std::int64_t count) {
      kernels->issue(LinearBackwardWeight{dy.view().slice(1, begin, count), x,
                                          halves.view().slice(0, begin, count),
                                          halves_bias.view().slice(0, begin, count)});
    };
    add(0, out / 2);
    add(out / 2, out - out / 2);
    CHECK(relative_error(halves.values(), whole.values()) < 1e-6);
    CHECK(halves_bias.values() == whole_bias.values());
  }
}

TEST_CASE("operands of the wrong shape are a broken contract") {
  const auto kernels = cpu::make_kernels(1, cpu::best_isa());
  TestTensor x(DType::f32, {4, 5});
  TestTensor w(DType::f32, {3, 6});
  TestTensor y(DType::f32, {4, 3});
  CHECK_THROWS(kernels->issue(LinearForward{x, w, {}, y}));
  TestTensor half(DType::bf16, {3, 5});
  CHECK_THROWS(kernels->issue(LinearForward{x, half, {}, y}));
}
