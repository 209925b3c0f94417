// SPDX-License-Identifier: Apache-2.0
// Bytes that own kernels move between memory and registers, counted by the executor.
#include "support/simt/kernels.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

using namespace trireme::device;
using trireme::device::simt::ExecutedKernels;
using trireme::device::simt::Traffic;
using trireme::device::test::run_seed;
using trireme::device::test::TestTensor;

namespace {

/// How often each element of a large operand is read and written.
struct Moves {
  const char* operand;
  std::int64_t bytes;
  int reads;
  int writes;
};

struct Count {
  std::string kernel;
  std::int64_t elements;
  std::vector<Moves> large;
  /// How much weights, statistics, tables and partial sums may add to what large operands move.
  double share_of_small;
};

/// Large operands move as often as they must and 16 bytes at a time; a line of the table of
/// docs/performance.md.
void check_traffic(const std::map<std::string, Traffic>& traffic, const Count& count) {
  INFO(count.kernel);
  double large = 0;
  double all = 0;
  for (const auto& moves : count.large) {
    INFO(moves.operand);
    const auto& found = traffic.at(moves.operand);
    CHECK(found.read_bytes == moves.reads * moves.bytes);
    CHECK(found.written_bytes == moves.writes * moves.bytes);
    CHECK(found.read_bytes == 16 * found.reads);
    CHECK(found.written_bytes == 16 * found.writes);
    large += static_cast<double>((moves.reads + moves.writes) * moves.bytes);
  }
  for (const auto& [name, found] : traffic) {
    all += static_cast<double>(found.read_bytes + found.written_bytes);
  }
  const auto elements = static_cast<double>(count.elements);
  std::printf("| %s | %.0f | %.2f |\n", count.kernel.c_str(), large / elements, all / elements);
  CHECK(all <= large * (1 + count.share_of_small));
}

constexpr auto f32 = DType::f32;
constexpr auto bf16 = DType::bf16;

/// Long enough for weights and partial sums to be small beside rows, as they are in training.
constexpr std::int64_t rows_of_norms = 128;

struct NormCase {
  NormCase(DType its_dtype, std::int64_t its_width) : dtype(its_dtype), width(its_width) {
    for (auto* tensor : {&x, &residual, &dy}) tensor->randomise(1);
    weight.randomise(2);
    bias.randomise(3);
    mean.randomise(4);
    rstd.set(std::vector<float>(rows_of_norms, 1.0F));
    d_weight.randomise(5);
    d_bias.randomise(6);
  }
  std::int64_t bytes() const { return x.view().element_count() * size(); }
  std::int64_t size() const { return static_cast<std::int64_t>(size_of(dtype)); }

  DType dtype;
  std::int64_t width;
  TestTensor x{dtype, {rows_of_norms, width}};
  TestTensor residual{dtype, {rows_of_norms, width}};
  TestTensor sum{dtype, {rows_of_norms, width}};
  TestTensor y{dtype, {rows_of_norms, width}};
  TestTensor dy{dtype, {rows_of_norms, width}};
  TestTensor dx{dtype, {rows_of_norms, width}};
  TestTensor weight{dtype, {width}};
  TestTensor bias{dtype, {width}};
  TestTensor mean{f32, {rows_of_norms}};
  TestTensor rstd{f32, {rows_of_norms}};
  TestTensor d_weight{f32, {width}};
  TestTensor d_bias{f32, {width}};
};

std::string of(const char* kernel, DType dtype, std::int64_t width) {
  return std::string(kernel) + ", " + name(dtype) + ", " + std::to_string(width) + " wide";
}

}  // namespace

TEST_CASE("norms' forward reads and writes every row once at the usual widths") {
  ExecutedKernels kernels(run_seed());
  const auto dtype = GENERATE(f32, bf16);
  for (const std::int64_t width : {64, 128, 768, 2048, 4096, 8192}) {
    NormCase test(dtype, width);
    const auto once = test.bytes();
    kernels.issue(NormForward{NormKind::layer, test.x, test.residual, test.sum, test.weight,
                              test.bias, test.y, test.mean, test.rstd, 1e-5F});
    // A row reads weight and bias, from a cache: half of what the row itself moves.
    check_traffic(
        kernels.traffic(),
        {of("layer norm forward, residual", dtype, width),
         once / test.size(),
         {{"x", once, 1, 0}, {"residual", once, 1, 0}, {"sum", once, 0, 1}, {"y", once, 0, 1}},
         0.55});
    kernels.issue(
        NormForward{NormKind::rms, test.x, {}, {}, test.weight, {}, test.y, {}, test.rstd, 1e-5F});
    check_traffic(kernels.traffic(), {of("rms norm forward", dtype, width),
                                      once / test.size(),
                                      {{"x", once, 1, 0}, {"y", once, 0, 1}},
                                      0.55});
  }
}

TEST_CASE("norms' backward reads and writes every row once at the usual widths") {
  ExecutedKernels kernels(run_seed());
  const auto dtype = GENERATE(f32, bf16);
  for (const std::int64_t width : {64, 128, 768, 2048, 4096, 8192}) {
    NormCase test(dtype, width);
    const auto once = test.bytes();
    kernels.issue(NormBackward{NormKind::layer, test.dy, test.x, test.weight, test.mean, test.rstd,
                               test.residual, test.dx, test.d_weight, test.d_bias});
    // Rows of a block are at least 16, and a warp's or more of them: two partial sums and the
    // weight for every 16 rows, written and read again. In training they are hundreds of rows.
    check_traffic(
        kernels.traffic(),
        {of("layer norm backward, residual", dtype, width),
         once / test.size(),
         {{"dy", once, 1, 0}, {"x", once, 1, 0}, {"d_residual", once, 1, 0}, {"dx", once, 0, 1}},
         0.55});
    kernels.issue(NormBackward{NormKind::rms,
                               test.dy,
                               test.x,
                               test.weight,
                               {},
                               test.rstd,
                               {},
                               test.dx,
                               test.d_weight,
                               {}});
    check_traffic(kernels.traffic(), {of("rms norm backward", dtype, width),
                                      once / test.size(),
                                      {{"dy", once, 1, 0}, {"x", once, 1, 0}, {"dx", once, 0, 1}},
                                      0.55});
  }
}

TEST_CASE("kernels between products read and write every element once, 16 bytes at a time") {
  ExecutedKernels kernels(run_seed());
  const auto dtype = GENERATE(f32, bf16);
  constexpr std::int64_t rows = 16;
  constexpr std::int64_t width = 512;
  const auto like = [&] { return TestTensor(dtype, {rows, width}); };
  auto a = like();
  auto b = like();
  auto c = like();
  auto d = like();
  auto e = like();
  for (auto* tensor : {&a, &b, &c}) tensor->randomise(1);
  const auto once = static_cast<std::int64_t>(a.view().byte_count());
  const auto check = [&](const char* kernel, std::vector<Moves> large, double small = 0.0) {
    check_traffic(kernels.traffic(), {std::string(kernel) + ", " + name(dtype), rows * width,
                                      std::move(large), small});
  };
  kernels.issue(SwigluForward{a, b, d});
  check("swiglu forward", {{"gate", once, 1, 0}, {"up", once, 1, 0}, {"y", once, 0, 1}});
  kernels.issue(SwigluBackward{a, b, c, d, e});
  check("swiglu backward", {{"dy", once, 1, 0},
                            {"gate", once, 1, 0},
                            {"up", once, 1, 0},
                            {"d_gate", once, 0, 1},
                            {"d_up", once, 0, 1}});
  kernels.issue(GeluForward{a, d});
  check("gelu forward", {{"x", once, 1, 0}, {"y", once, 0, 1}});
  kernels.issue(GeluBackward{a, b, d});
  check("gelu backward", {{"dy", once, 1, 0}, {"x", once, 1, 0}, {"dx", once, 0, 1}});
  kernels.issue(Add{a, b, d});
  check("add", {{"x", once, 1, 0}, {"y", once, 1, 0}, {"z", once, 0, 1}});
  kernels.issue(ApplyDropout{a, {0.1F, 1, 2, 0, 0, width}, d});
  check("dropout", {{"x", once, 1, 0}, {"y", once, 0, 1}});

  TestTensor magnitude(f32, {1});
  TestTensor unscale(f32, {1});
  TestTensor codes(DType::e4m3, {rows, width});
  kernels.issue(LargestMagnitude{a, magnitude});
  check("largest magnitude", {{"x", once, 1, 0}}, 0.02);
  kernels.issue(Quantise{a, magnitude, {codes, unscale}});
  // The magnitude is a cached number that every thread reads.
  check("quantise to e4m3", {{"x", once, 1, 0}, {"codes", rows * width, 0, 1}}, 0.1);

  // The tables are a position's alone: here as large as one head of every token, in fp32.
  TestTensor cosines(f32, {rows, 32});
  TestTensor sines(f32, {rows, 32});
  cosines.randomise(1);
  sines.randomise(2);
  kernels.issue(Rotary{a.view().reshape({1, rows, 8, 64}), cosines, sines, 0, false});
  check("rotary", {{"x", once, 1, 1}}, dtype == bf16 ? 1.01 : 0.51);

  TestTensor sum(f32, {rows, width});
  sum.randomise(3);
  kernels.issue(Accumulate{a, sum});
  const auto wide = static_cast<std::int64_t>(sum.view().byte_count());
  check("accumulate", {{"x", once, 1, 0}, {"sum", wide, 1, 1}});
  TestTensor other(dtype == f32 ? bf16 : f32, {rows, width});
  kernels.issue(Copy{a, other});
  check("copy to the other type",
        {{"from", once, 1, 0}, {"to", static_cast<std::int64_t>(other.view().byte_count()), 0, 1}});
}

TEST_CASE("losses and updates read and write every element as often as they must") {
  ExecutedKernels kernels(run_seed());
  const auto dtype = GENERATE(f32, bf16);
  constexpr std::int64_t rows = 4;
  constexpr std::int64_t columns = 4096;
  TestTensor logits(dtype, {rows, columns});
  TestTensor targets(DType::i32, {rows});
  TestTensor stats(f32, {3, rows});
  TestTensor lse(f32, {rows});
  logits.randomise(1);
  targets.set_integers({1, 2, 3, 4000});
  lse.set({9, 9, 9, 9});
  const auto once = static_cast<std::int64_t>(logits.view().byte_count());
  kernels.issue(CrossEntropyStats{logits, targets, 0, stats});
  // The target's logit is read by itself.
  const auto found = kernels.traffic().at("logits");
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  CHECK(found.read_bytes == once + rows * size);
  CHECK(found.reads == once / 16 + rows);
  kernels.issue(CrossEntropyGradient{logits, targets, 0, lse, 1.0F});
  check_traffic(kernels.traffic(), {std::string("cross-entropy gradient, ") + name(dtype),
                                    rows * columns,
                                    {{"logits", once, 1, 1}},
                                    0.26});

  // Rows that begin anywhere: at most 15 odd elements at each end.
  constexpr std::int64_t odd = 4001;
  TestTensor uneven(dtype, {rows, odd});
  uneven.randomise(4);
  kernels.issue(CrossEntropyGradient{uneven, targets, 0, lse, 1.0F});
  const auto moved = kernels.traffic().at("logits");
  const auto all = static_cast<std::int64_t>(uneven.view().byte_count());
  CHECK(moved.read_bytes == all);
  CHECK(moved.written_bytes == all);
  CHECK(moved.reads <= all / 16 + rows * 16);
  CHECK(moved.writes <= all / 16 + rows * 16);

  constexpr std::int64_t count = 8192;
  TestTensor gradient(f32, {count});
  TestTensor master(f32, {count});
  TestTensor first(f32, {count});
  TestTensor second(f32, {count});
  TestTensor parameter(dtype, {count});
  for (auto* run : {&gradient, &master, &first}) run->randomise(2);
  second.set(std::vector<float>(count, 1.0F));
  kernels.issue(AdamWUpdate{{0.1F}, gradient, master, first, second, parameter});
  check_traffic(kernels.traffic(), {std::string("adamw, parameter ") + name(dtype),
                                    count,
                                    {{"gradient", 4 * count, 1, 0},
                                     {"master", 4 * count, 1, 1},
                                     {"first_moment", 4 * count, 1, 1},
                                     {"second_moment", 4 * count, 1, 1},
                                     {"parameter", size * count, 0, 1}},
                                    0.0});
  if (dtype == DType::bf16) {
    // Rows that eight divides, and rows that it does not.
    for (const std::int64_t width : {1024, 37}) {
      const StochasticRounding rounding{.seed = 1, .stream = 2, .width = width, .stride = width};
      kernels.issue(AdamWUpdate{{.learning_rate = 0.1F, .rounding = rounding},
                                gradient,
                                master,
                                first,
                                second,
                                parameter});
      check_traffic(kernels.traffic(), {"adamw, parameter rounded at random",
                                        count,
                                        {{"gradient", 4 * count, 1, 0},
                                         {"master", 4 * count, 1, 1},
                                         {"first_moment", 4 * count, 1, 1},
                                         {"second_moment", 4 * count, 1, 1},
                                         {"parameter", size * count, 0, 1}},
                                        0.0});
    }
  }
  TestTensor numbers(f32, {20000});
  numbers.randomise(3);
  static_cast<void>(kernels.sum_of_squares(numbers));
  check_traffic(kernels.traffic(), {"sum of squares", 20000, {{"x", 80000, 1, 0}}, 0.01});
}
