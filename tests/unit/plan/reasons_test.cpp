// SPDX-License-Identifier: Apache-2.0
#include "plan/search/reasons.hpp"

#include "trireme/predict/bound.hpp"

#include "small_model.hpp"
#include "unit/predict/machines.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::plan;
using tests::small_machine;

namespace {

/// A step of a layout that is idle for so many seconds.
Explained idle_for(double seconds, int pipeline, int micro_batches) {
  Explained layout;
  layout.choice = {.ranks = 4, .pipeline = pipeline};
  layout.workload = tests::small_workload();
  layout.workload.degrees = {.data = 4 / pipeline, .pipeline = pipeline};
  layout.workload.micro_batches.count = micro_batches;
  layout.step.parts[predict::Part::compute] = predict::time_of(1);
  layout.step.parts[predict::Part::bubble] = predict::time_of(seconds);
  return layout;
}

}  // namespace

TEST_CASE("ranks that are idle wait for stages, or for the cores that they share") {
  const auto best = idle_for(0, 1, 1);
  const auto on_gpus = small_machine(1);
  CHECK_THAT(why_slower(idle_for(1, 2, 3), best, on_gpus),
             Catch::EndsWith("+1.000 s bubble (3 micro-batches a step fill 2 stages)"));
  CHECK_THAT(why_slower(idle_for(1, 2, 1), best, on_gpus),
             Catch::EndsWith("(1 micro-batch a step fills 2 stages)"));
  CHECK_THAT(why_slower(idle_for(1, 1, 1), best, on_gpus),
             Catch::EndsWith("(its ranks wait for each other)"));
  auto on_cores = on_gpus;
  on_cores.node.gpus = 0;
  on_cores.node.cores = 2;
  CHECK_THAT(why_slower(idle_for(1, 2, 3), best, on_cores),
             Catch::EndsWith("(4 ranks take turns on 2 cores)"));
}

TEST_CASE("a layout that fits is not said to lack memory") {
  CHECK_THAT(why_without_room({.choice = {}, .bytes = 5, .room = 3}, {}),
             Catch::StartsWith("does not fit: ") && Catch::Contains("2 B too much"));
  CHECK_THAT(why_without_room({.choice = {}, .bytes = 3, .room = 5}, {}),
             Catch::StartsWith("fits, but its step does not end within 100 days"));
}

TEST_CASE("large products have the whole rate of their precision") {
  auto machine = small_machine(1);
  machine.node.memory_rate = 1e30;
  for (const auto precision :
       {predict::Precision::fp32, predict::Precision::bf16, predict::Precision::fp8}) {
    CAPTURE(static_cast<int>(precision));
    auto workload = tests::large_workload();
    workload.program.precision = precision;
    CHECK(predict::LowerBounds(machine).product_share(workload) == Approx(1));
  }
}
