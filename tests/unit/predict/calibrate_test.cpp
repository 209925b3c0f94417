// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/calibrate.hpp"

#include "machines.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace trireme;
using namespace trireme::predict;

namespace {

/// Steps in which products, memory, links and launches each count somewhere.
std::vector<MeasuredStep> many_steps() {
  auto machine = tests::plain_machine();
  machine.node.peak_bf16 = 1e11;
  machine.node.memory_rate = 1e10;
  std::vector<MeasuredStep> steps;
  for (const std::int64_t hidden : {64, 256, 1024}) {
    for (const int data : {1, 2, 4}) {
      for (const int tensor : {1, 2}) {
        auto workload = tests::small_workload();
        auto& shape = workload.shape;
        shape.hidden = hidden;
        shape.heads = shape.kv_heads = 2;
        shape.head_width = hidden / 2;
        shape.intermediate = 4 * hidden;
        shape.sequence = data == 2 ? 32 : 256;
        workload.degrees = {.tensor = tensor, .context = 1, .data = data, .pipeline = 1};
        workload.program.launch_gap = 5e-6;
        steps.push_back({machine, workload, 0});
      }
    }
  }
  return steps;
}

MeasuredSteps pointers(const std::vector<MeasuredStep>& steps) {
  MeasuredSteps all;
  for (const auto& step : steps) all.push_back(&step);
  return all;
}

/// Steps as a machine with these factors passes them.
std::vector<MeasuredStep> steps_with(const Factors& truth) {
  auto steps = many_steps();
  for (auto& step : steps) step.seconds = predicted_seconds(step, truth);
  return steps;
}

double worst_error(const std::vector<MeasuredStep>& steps, const Factors& factors) {
  double worst = 0;
  for (const auto& step : steps) {
    worst = std::max(worst, std::abs(predicted_seconds(step, factors) / step.seconds - 1));
  }
  return worst;
}

}  // namespace

TEST_CASE("factors that have made steps are found again") {
  const Factors truth{0.8, 1, 0.7, 0.6, 1.5};
  const auto steps = steps_with(truth);
  CHECK(worst_error(steps, no_change) > 0.2);
  const auto found = fit(pointers(steps), determined_by(pointers(steps)));
  CHECK(worst_error(steps, found) < 0.02);
  for (const std::size_t factor : {0, 2, 3}) {
    CAPTURE(factor_names[factor]);
    CHECK(found[factor] == Approx(truth[factor]).epsilon(0.1));
  }
}

TEST_CASE("one step that was disturbed moves the factors little") {
  const Factors truth{0.8, 1, 0.7, 0.6, 1};
  auto steps = steps_with(truth);
  steps[4].seconds *= 3;
  const auto found = fit(pointers(steps));
  steps[4].seconds /= 3;
  CHECK(worst_error(steps, found) < 0.03);
}

TEST_CASE("factors that steps do not tell apart are not determined") {
  auto steps = steps_with(no_change);
  const auto all = determined_by(pointers(steps));
  CHECK(all[0]);
  CHECK(all[2]);
  CHECK(all[3]);
  // Without messages no step depends on links.
  std::erase_if(steps, [](const MeasuredStep& step) {
    return step.workload.degrees.data > 1 || step.workload.degrees.tensor > 1;
  });
  const auto alone = determined_by(pointers(steps));
  CHECK_FALSE(alone[3]);
  CHECK(alone[0]);
  // Equal steps determine one factor, however many they are.
  const std::vector<MeasuredStep> equal(10, steps.front());
  const auto one = determined_by(pointers(equal));
  CHECK(std::accumulate(one.begin(), one.end(), 0) == 1);
  const auto found = fit(pointers(equal), one);
  for (std::size_t factor = 0; factor < one.size(); ++factor) {
    if (!one[factor]) CHECK(found[factor] == 1);
  }
}

TEST_CASE("there are no more factors than steps") {
  const auto steps = steps_with(no_change);
  const MeasuredSteps two{&steps[0], &steps[10]};
  const auto found = determined_by(two);
  CHECK(std::accumulate(found.begin(), found.end(), 0) <= 2);
}

TEST_CASE("a factor not fitted stays, and a fitted one leaves a share that a file may have") {
  auto steps = many_steps();
  std::erase_if(steps, [](const MeasuredStep& step) { return step.workload.degrees.tensor == 1; });
  // More than the peak without a table of products: nobody has asked about it.
  for (auto& step : steps) {
    step.machine.share.product = 2;
    step.machine.share.link = 9;
    step.machine.inside.rate /= 9;
    step.machine.network.rate /= 9;
    step.seconds = predicted_seconds(step, {1, 1, 1, 4, 1});
  }
  FittedFactors link_alone{};
  link_alone[3] = true;
  const auto found = fit(pointers(steps), link_alone);
  CHECK(found[0] == 1);
  CHECK(9 * found[3] <= 10);
  CHECK(9 * found[3] == Approx(10).epsilon(0.01));
  CHECK(2 * fit(pointers(steps))[0] <= 1);
}
