// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/measure.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <set>

using namespace trireme::device;
using namespace trireme::device::test;

TEST_CASE("the measured peak is that of some instructions and of a CPU that exists") {
  for (const auto dtype : {DType::f32, DType::bf16}) {
    const auto peak = measured_peak(dtype, 1);
    INFO(name(dtype) << " by " << peak.instructions);
    // Any CPU with AVX2 makes more than one operation a cycle, and none that exists a million.
    CHECK(peak.flops > 1e9);
    CHECK(peak.flops < 1e15);
    CHECK_FALSE(peak.instructions.empty());
  }
}

TEST_CASE("a rate has settled when its best has stood for a while, however it began") {
  using std::chrono::milliseconds;
  const auto begin = SettledRate::Clock::now();
  const auto rates_until_settled = [&](const std::vector<double>& rates, milliseconds each) {
    SettledRate settled({milliseconds(30), milliseconds(500)}, begin);
    auto now = begin;
    std::size_t count = 0;
    while (settled.goes_on(now)) {
      now += each;
      settled.add(rates[std::min(count++, rates.size() - 1)], now);
    }
    return std::pair{settled.best(), count};
  };
  // Twice as fast from the 20th on: too soon a rate of 100 would have been believed.
  std::vector<double> rising(19, 100.0);
  rising.push_back(200);
  CHECK(rates_until_settled(rising, milliseconds(1)) == std::pair{200.0, std::size_t{50}});
  // Less than 1 % is no growth, but counts.
  CHECK(rates_until_settled({100, 100.5}, milliseconds(1)) == std::pair{100.5, std::size_t{31}});
  // A rate that takes long is measured three times, and one that always grows comes to an end.
  CHECK(rates_until_settled({100}, milliseconds(700)).second == 3);
  std::vector<double> growing;
  for (int count = 1; count < 1000; ++count) growing.push_back(100.0 * count);
  CHECK(rates_until_settled(growing, milliseconds(1)).second == 500);
}

TEST_CASE("random operands differ from row to row and repeat from call to call") {
  const auto kernels = make_cpu_kernels(1);
  TestTensor first(DType::bf16, {300, 257});
  TestTensor second(DType::bf16, {300, 257});
  fill_random(*kernels, first, 1, 0.5F);
  fill_random(*kernels, second, 1, 0.5F);
  CHECK(first.fully_written());
  const auto values = first.values();
  CHECK(values == second.values());
  std::set<std::vector<float>> rows;
  double squares = 0;
  for (auto row = values.begin(); row != values.end(); row += 257) rows.emplace(row, row + 257);
  for (const float value : values)
    squares += static_cast<double>(value) * static_cast<double>(value);
  CHECK(rows.size() == 300);
  CHECK(std::sqrt(squares / static_cast<double>(values.size())) == Approx(0.5).epsilon(0.02));
  fill_random(*kernels, second, 2, 0.5F);
  CHECK(second.values() != values);
}

TEST_CASE("measuring products times each of the three and counts their operations") {
  const auto kernels = make_cpu_kernels(1);
  const auto times = measure_gemms(*kernels, DType::bf16, {8, 16, 24}, 3);
  REQUIRE(times.size() == 3);
  CHECK(times[0].pass == LinearPass::forward);
  CHECK(times[1].pass == LinearPass::backward_input);
  CHECK(times[2].pass == LinearPass::backward_weight);
  for (const auto& time : times) {
    CHECK(time.operations() == 2.0 * 8 * 16 * 24);
    CHECK(time.fastest_seconds > 0);
    CHECK(time.fastest_seconds <= time.median_seconds);
  }
}
