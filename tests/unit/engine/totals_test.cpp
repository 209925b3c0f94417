// SPDX-License-Identifier: Apache-2.0
// Sums that do not depend on the order of their terms, and their way over ranks.
#include "engine/totals/totals.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/measure.hpp"

#include "support/forwarding_kernels.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

using namespace trireme;
using engine::ExactSum;

namespace {

double exact_sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.value();
}

/// Sum of what `ranks` ranks have of the terms, as their words add up.
double sum_of_words(const std::vector<double>& terms, std::size_t ranks) {
  std::vector<std::uint32_t> words(ExactSum::words, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    ExactSum own;
    for (auto at = rank; at < terms.size(); at += ranks) own.add(terms[at]);
    std::vector<std::int32_t> mine(ExactSum::words);
    own.write(std::span<std::int32_t, ExactSum::words>(mine));
    for (std::size_t word = 0; word < words.size(); ++word) {
      words[word] += static_cast<std::uint32_t>(mine[word]);
    }
  }
  std::vector<std::int32_t> all(words.begin(), words.end());
  ExactSum sum;
  sum.read(std::span<const std::int32_t, ExactSum::words>(all));
  return sum.value();
}

/// Kernels by which the losses of three micro-batches are these.
class AwkwardLosses final : public testing::ForwardingKernels {
 public:
  AwkwardLosses() : ForwardingKernels(device::make_reference_kernels()) {}

  void start_sum_of_squares(const device::Tensor&) override {}
  void start_sum(const device::Tensor&) override {}
  std::vector<double> finish_sums() override { return {0x1p53, 1, 1}; }
};

}  // namespace

TEST_CASE("losses of micro-batches are summed exactly, whoever computes which") {
  const auto mesh = layout::Mesh::of(1, 1, 1);
  const auto options = testing::options_of_stage(mesh, 0, 2);
  const auto groups =
      comm::make_dry_run_groups(mesh, options.sharding.rank, comm::DryRunData::mirrored);
  AwkwardLosses kernels;
  auto memory = engine::Memory::host(engine::measure(options));
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  CHECK(engine.evaluate().loss_sum == 0x1p53 + 2);
}

TEST_CASE("more ranks than digits have room for are refused") {
  for (const bool all_at_once : {true, false}) {
    for (const int ranks : {65'536, 65'792}) {
      // 65,792 = 256 * 257.
      const auto mesh = layout::Mesh::of(256, ranks / 256, 1);
      const auto groups =
          comm::make_dry_run_groups(mesh, base::Rank{0}, comm::DryRunData::untouched);
      const auto world = comm::make_dry_run_group("world", mesh.group(layout::all_axes, {}), 0,
                                                  comm::DryRunData::untouched);
      auto views = groups.views();
      if (all_at_once) views.set_all_ranks(*world);
      engine::Totals totals;
      if (ranks == 65'536) {
        CHECK_NOTHROW(engine::sum_over_ranks(views, totals));
      } else {
        CHECK_THROWS_AS(engine::sum_over_ranks(views, totals), base::Error);
      }
    }
  }
}

TEST_CASE("a sum has the same bits in any order and over any number of ranks") {
  std::mt19937_64 engine(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<double> terms(200);
    for (auto& term : terms) {
      const auto exponent = static_cast<int>(engine() % 120) - 60;
      const double sign = engine() % 4 == 0 ? -1 : 1;
      term = sign * std::ldexp(1.0 + static_cast<double>(engine() >> 12) * 0x1p-52, exponent);
    }
    const double sum = exact_sum_of(terms);
    for (const std::size_t ranks : {1, 2, 3, 7, 200}) CHECK(sum_of_words(terms, ranks) == sum);
    std::shuffle(terms.begin(), terms.end(), engine);
    CHECK(exact_sum_of(terms) == sum);
    // In 64 bits of mantissa more than half of the rounding is gone.
    long double reference = 0;
    std::sort(terms.begin(), terms.end(),
              [](double a, double b) { return std::abs(a) < std::abs(b); });
    for (const double term : terms) reference += term;
    CHECK(sum == Approx(static_cast<double>(reference)).epsilon(1e-13));
  }
}

TEST_CASE("sums are exact where doubles would round, and know the ends of the range") {
  constexpr double largest = std::numeric_limits<double>::max();
  constexpr double smallest = std::numeric_limits<double>::denorm_min();
  CHECK(exact_sum_of({1e300, 1, -1e300}) == 1);
  CHECK(exact_sum_of({0x1p53, 1, 1}) == 0x1p53 + 2);
  CHECK(exact_sum_of({smallest, smallest, smallest}) == 3 * smallest);
  CHECK(exact_sum_of({largest, smallest, -largest}) == smallest);
  CHECK(exact_sum_of({0.1, -0.3}) == 0.1 - 0.3);
  CHECK(exact_sum_of({largest}) == largest);
  CHECK(exact_sum_of({}) == 0);
  CHECK(std::isinf(exact_sum_of({largest, largest})));
  CHECK(sum_of_words({-1, -2, 0.5}, 3) == -2.5);
}

TEST_CASE("what is no number stays none, over ranks too") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t ranks : {1, 3}) {
    CHECK(sum_of_words({1, infinity, 2}, ranks) == infinity);
    CHECK(sum_of_words({1, -infinity, 2}, ranks) == -infinity);
    CHECK(std::isnan(sum_of_words({1, none, 2}, ranks)));
    CHECK(std::isnan(sum_of_words({infinity, -infinity, 2}, ranks)));
  }
}
