// SPDX-License-Identifier: Apache-2.0
#include "report/time_parts.hpp"

#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using report::of;
using report::Part;

TEST_CASE("a step's time is the sum of its parts, and compute is what is left") {
  const tests::HandMadeRuns runs;
  runs.step("a", 1, 2,
            ",\"step_ms\":100,\"tensor_comm_ms\":10,\"exposed_comm_ms\":20,\"bubble_ms\":5,"
            "\"data_ms\":1,\"optimizer_ms\":4,\"parameters_ms\":3");
  runs.step("a", 2, 2, ",\"step_ms\":100,\"exposed_comm_ms\":200");
  runs.step("a", 3, 2);
  const auto times = report::part_times(runs.view("a").record);
  REQUIRE(times.size() == 3);
  CHECK(of(times[0], Part::compute) == 57);
  CHECK(of(times[0], Part::tensor) == 10);
  CHECK(of(times[0], Part::gradients) == 20);
  CHECK(of(times[0], Part::bubble) == 5);
  CHECK(of(times[0], Part::data) == 1);
  CHECK(of(times[0], Part::optimizer) == 4);
  CHECK(of(times[0], Part::parameters) == 3);
  CHECK(report::sum_of(times[0]) == 100);
  // Clocks that disagree leave nothing, not less.
  CHECK(of(times[1], Part::compute) == 0);
  // An older line tells nothing.
  CHECK(report::sum_of(times[2]) == 0);
}

TEST_CASE("a predicted step has the parts that its run has measured, and compute is what is left") {
  const tests::HandMadeRuns runs;
  const std::string prediction =
      ",\"prediction\":{\"machine\":\"m\",\"step_ms\":100,\"tensor_comm_ms\":10,"
      "\"bubble_ms\":20,\"exposed_comm_ms\":5,\"optimizer_ms\":7}";
  runs.start("a", 1, prediction);
  runs.step("a", 1, 2, ",\"step_ms\":110,\"bubble_ms\":30,\"tensor_comm_ms\":0");
  const auto predicted = report::predicted_part_times(runs.view("a").record);
  REQUIRE(predicted.has_value());
  CHECK(predicted->machine == "m");
  CHECK(report::sum_of(predicted->times) == 100);
  CHECK(of(predicted->times, Part::tensor) == 10);
  CHECK(of(predicted->times, Part::bubble) == 20);
  // The run has measured neither exposed reductions nor its update.
  CHECK(of(predicted->times, Part::gradients) == 0);
  CHECK(of(predicted->times, Part::optimizer) == 0);
  CHECK(of(predicted->times, Part::compute) == 70);
}

TEST_CASE("of runs without a whole prediction nothing is predicted") {
  const tests::HandMadeRuns runs;
  runs.start("a");
  CHECK_FALSE(report::predicted_part_times(runs.view("a").record).has_value());
  for (const std::string wrong :
       {"5", "{\"machine\":\"m\"}",
        "{\"machine\":\"m\",\"step_ms\":-1,\"tensor_comm_ms\":0,\"bubble_ms\":0,"
        "\"exposed_comm_ms\":0,\"optimizer_ms\":0}"}) {
    runs.start("b", 1, ",\"prediction\":" + wrong);
    CHECK_FALSE(report::predicted_part_times(runs.view("b").record).has_value());
  }
}

TEST_CASE("saves and evaluations are counted behind the steps that they follow") {
  const tests::HandMadeRuns runs;
  const auto line = [&runs](const std::string& text) { runs.write("a", "metrics.jsonl", text); };
  for (const int step : {1, 2}) runs.step("a", step, 2, ",\"step_ms\":10,\"restart\":0");
  // Saves of a start whose step 2 is made again, and of two tiers.
  line("{\"kind\":\"save\",\"step\":2,\"restart\":0,\"stall_ms\":1000}\n");
  runs.step("a", 2, 2, ",\"step_ms\":10,\"restart\":1");
  line("{\"kind\":\"save\",\"step\":2,\"restart\":1,\"stall_ms\":3}\n");
  line("{\"kind\":\"save\",\"step\":2,\"restart\":1,\"stall_ms\":4}\n");
  line("{\"kind\":\"eval\",\"step\":2,\"loss\":3,\"seconds\":0.5}\n");
  const auto times = report::part_times(runs.view("a").record);
  REQUIRE(times.size() == 2);
  CHECK(of(times[0], Part::save) == 0);
  CHECK(of(times[1], Part::save) == 7);
  CHECK(of(times[1], Part::evaluation) == 500);
}

TEST_CASE("the first five steps of each start are in no mean") {
  const tests::HandMadeRuns runs;
  for (int step = 1; step <= 20; ++step) {
    const int place = (step - 1) % 10;
    runs.step(
        "a", step, 2,
        base::format(",\"step_ms\":{},\"restart\":{}", place < 5 ? 1000 : 10, step > 10 ? 1 : 0));
  }
  CHECK(report::sum_of(report::mean_part_times(runs.view("a").record)) == Approx(10));
  // There is nothing else.
  runs.step("b", 1, 2, ",\"step_ms\":1000");
  CHECK(report::sum_of(report::mean_part_times(runs.view("b").record)) == Approx(1000));
}
