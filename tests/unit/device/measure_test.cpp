#include "trireme/device/measure.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;

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

TEST_CASE("measuring products times each of the three and counts their operations") {
  const auto kernels = make_cpu_kernels(1);
  const auto times = measure_products(*kernels, DType::bf16, {8, 16, 24}, 3);
  REQUIRE(times.size() == 3);
  CHECK(times[0].product == Product::forward);
  CHECK(times[1].product == Product::backward_input);
  CHECK(times[2].product == Product::backward_weight);
  for (const auto& time : times) {
    CHECK(time.operations() == 2.0 * 8 * 16 * 24);
    CHECK(time.fastest_seconds > 0);
    CHECK(time.fastest_seconds <= time.median_seconds);
  }
}
