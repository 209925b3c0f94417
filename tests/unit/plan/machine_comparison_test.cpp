// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/machine_comparison.hpp"

#include "trireme/base/error.hpp"
#include "trireme/predict/failures.hpp"

#include "small_model.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>

using namespace trireme;
using namespace trireme::plan;
using predict::Part;
using tests::model_of;
using tests::small_config;

namespace {

/// Two GPUs a node, whose rates are all as high as their peak, at a price.
predict::Machine priced_machine(double peak, double node_hour) {
  auto machine = tests::small_machine(std::int64_t{1} << 36);
  machine.node.peak_fp32 = machine.node.peak_bf16 = peak;
  constexpr double flops_of_byte = 1000;
  machine.node.memory_rate = machine.inside.rate = machine.network.rate = peak / flops_of_byte;
  machine.tiles = {
      .processors = 8, .rows = 64, .columns = 64, .half_rate_terms = 16, .for_collectives = 1};
  machine.site.node_hour = node_hour;
  for (const auto& row : predict::machine_keys()) {
    machine.sources[row.key.full_name()] = "assumed: a test";
  }
  return machine;
}

std::filesystem::path written(const tests::TemporaryFolder& folder, const std::string& name,
                              const predict::Machine& machine) {
  return folder.write(name + ".conf", predict::machine_text(machine, "A test."));
}

std::vector<ComparedMachine> compared_by(const ComparisonRequest& request) {
  const auto config = small_config({"numerics.backend=cuda"});
  return base::value_or_throw(compare_machines(config, model_of(config), request));
}

std::vector<std::string> names_of(const std::vector<ComparedMachine>& machines) {
  std::vector<std::string> names;
  for (const auto& each : machines) {
    names.push_back(each.machine + (each.tenure == Tenure::spot ? " spot" : "") +
                    (each.left_out.empty() ? "" : ": " + each.left_out));
  }
  return names;
}

predict::StepPrediction step_of_four_seconds() {
  predict::StepPrediction step;
  step.parts[Part::compute] = predict::time_of(3);
  step.parts[Part::bubble] = predict::time_of(1);
  return step;
}

}  // namespace

TEST_CASE("a run costs its hours, its power, and what failures make it do again") {
  auto machine = priced_machine(1e12, 10);
  const RunSize run{.ranks = 4, .steps = 3600, .state_bytes = 1e12, .saves_beside = true};
  const auto plain = estimate_run(machine, Tenure::own, run, step_of_four_seconds());
  CHECK(plain.nodes == 2);
  CHECK(plain.hours == Approx(4));
  CHECK(plain.cost == Approx(80));
  CHECK_FALSE(plain.kwh);
  CHECK_FALSE(plain.failure_hours);
  // A quarter of the time waits: 6,500 W, and a quarter more for the site.
  machine.site.busy_watts = 8000;
  machine.site.idle_watts = 2000;
  machine.site.pue = 1.25;
  machine.site.grams_per_kwh = 400;
  machine.site.mtbf_node_days = 2;
  machine.site.spot_mtbf_node_days = 1;
  machine.site.spot_hour = 3;
  machine.site.restart_seconds = 300;
  machine.node.disk_write = 1e10;
  machine.node.host_copy = 1e11;
  const auto failing = estimate_run(machine, Tenure::own, run, step_of_four_seconds());
  // 500 GB of a node: five seconds to its memory, 50 to the disk; a failure a day.
  const predict::SaveTimes save{5, 50};
  const predict::FailureTimes failures{24 * 3600, 300};
  const double interval = predict::best_interval(save, failures);
  CHECK(failing.save_minutes == Approx(interval / 60));
  CHECK(failing.failure_hours == Approx(24));
  CHECK(failing.effective == Approx(predict::effective_share(interval, save, failures)));
  CHECK(failing.hours == Approx(4 / failing.effective));
  CHECK(failing.kwh == Approx(2 * failing.hours * 6.5 * 1.25));
  CHECK(failing.kg_co2 == Approx(*failing.kwh * 0.4));
  const auto spot = estimate_run(machine, Tenure::spot, run, step_of_four_seconds());
  CHECK(spot.failure_hours == Approx(12));
  CHECK(spot.effective < failing.effective);
  CHECK(spot.cost == Approx(2 * 3 * spot.hours));
  // Without a rate to the node's memory training waits for the disk.
  machine.node.host_copy = 0;
  const auto waiting = estimate_run(machine, Tenure::own, run, step_of_four_seconds());
  CHECK(waiting.effective < failing.effective);
}

TEST_CASE("a node that waits takes what one takes that computes, where a file does not say") {
  auto machine = priced_machine(1e12, 0);
  machine.site.busy_watts = 8000;
  const RunSize run{.ranks = 4, .steps = 3600, .state_bytes = 1e12, .saves_beside = true};
  const auto estimate = estimate_run(machine, Tenure::own, run, step_of_four_seconds());
  CHECK(estimate.kwh == Approx(2 * 4 * 8));
}

TEST_CASE("a run whose failures leave no time for steps does not end, and is not compared") {
  const tests::TemporaryFolder folder;
  auto machine = priced_machine(1e12, 10);
  // A failure every 43 s, and a quarter of an hour until the first step behind it.
  machine.site.mtbf_node_days = 0.001;
  machine.site.restart_seconds = 900;
  machine.node.disk_write = 1e10;
  const RunSize run{.ranks = 4, .steps = 3600, .state_bytes = 1e12, .saves_beside = true};
  const auto estimate = estimate_run(machine, Tenure::own, run, step_of_four_seconds());
  CHECK_FALSE(estimate.ends());
  CHECK_FALSE(estimate.cost);
  CHECK_THAT(text(estimate), Catch::StartsWith("the run does not end on 2 nodes: a failure every"));
  CHECK(to_json(estimate)["hours"].is_null());
  const auto machines =
      compared_by({.machines = {written(folder, "failing", machine)}, .nodes = 2, .data = ""});
  CHECK_THAT(machines[0].left_out, Catch::StartsWith("the run does not end on 2 nodes"));
}

TEST_CASE("nodes of more ranks than a search is for are refused") {
  auto machine = priced_machine(1e12, 10);
  CHECK(base::value_or_throw(ranks_of_nodes(machine, most_searched_ranks / 2)) ==
        most_searched_ranks);
  machine.node.gpus = most_searched_ranks;
  const auto many = ranks_of_nodes(machine, most_searched_ranks);
  REQUIRE_FALSE(many.ok());
  CHECK_THAT(many.failure().text, Catch::Contains("are 1099511627776 ranks, more than 1048576"));
}

TEST_CASE("machines are compared by time, by cost, and by what data may be there") {
  const tests::TemporaryFolder folder;
  auto fast = priced_machine(1e13, 100);
  fast.site.allows = "public, europe";
  auto cheap = priced_machine(2e12, 1);
  cheap.site.spot_hour = 0.5;
  auto unpriced = priced_machine(1e12, 0);
  const std::vector<std::filesystem::path> files{written(folder, "cheap", cheap),
                                                 written(folder, "fast", fast),
                                                 written(folder, "unpriced", unpriced)};
  CHECK(names_of(compared_by({.machines = files, .nodes = 2, .data = ""})) ==
        std::vector<std::string>{"fast", "cheap", "unpriced"});
  const ComparisonRequest by_cost{
      .machines = files, .ranks = 4, .objective = Objective::cost, .data = ""};
  const auto costs = compared_by(by_cost);
  CHECK(names_of(costs) ==
        std::vector<std::string>{"cheap", "fast", "unpriced: it has no site.node_hour"});
  CHECK(costs[0].ranks == 4);
  CHECK(*costs[0].run.cost < *costs[1].run.cost);
  CHECK(costs[0].tie);
  CHECK_FALSE(costs[1].tie);
  CHECK_THAT(text(costs, by_cost), Catch::StartsWith("least cost of a run") &&
                                       Catch::Contains("unpriced: left out, it has no"));
  CHECK(to_json(costs)["machines"][0]["run"]["cost"] == *costs[0].run.cost);
  // Whose power nobody says cannot be compared by it.
  auto frugal = cheap;
  frugal.site.busy_watts = 1000;
  frugal.site.grams_per_kwh = 50;
  auto dirty = fast;
  dirty.site.busy_watts = 10'000;
  const ComparisonRequest by_carbon{
      .machines = {written(folder, "dirty", dirty), written(folder, "frugal", frugal), files[2]},
      .nodes = 2,
      .objective = Objective::carbon,
      .data = ""};
  const auto emissions = compared_by(by_carbon);
  CHECK(names_of(emissions) == std::vector<std::string>{"frugal",
                                                        "dirty: it has no site.grams_per_kwh",
                                                        "unpriced: it has no site.busy_watts"});
  CHECK_THAT(text(emissions, by_carbon), Catch::StartsWith("least CO2 of a run"));
  CHECK(to_json(emissions)["machines"][0]["run"]["kg_co2e"] == *emissions[0].run.kg_co2);
  const auto european = names_of(compared_by({.machines = files, .nodes = 2, .data = "europe"}));
  CHECK(european[0] == "fast");
  CHECK_THAT(european[1], Catch::StartsWith("cheap: its site.allows does not have 'europe'"));
  // Nobody says how often it is taken away.
  const auto spot = names_of(
      compared_by({.machines = {files[0]}, .nodes = 2, .data = "", .includes_spot = true}));
  CHECK(spot[0] == "cheap");
  CHECK_THAT(spot[1], Catch::StartsWith("cheap spot: it has no site.spot_mtbf_node_days"));
}

TEST_CASE(
    "machines within the error of the prediction are ties, and one without room is left out") {
  const tests::TemporaryFolder folder;
  const auto one = priced_machine(1e12, 1);
  auto other = one;
  other.node.peak_bf16 = other.node.peak_fp32 = 1.001e12;
  auto small = one;
  small.node.memory = 1 << 20;
  const ComparisonRequest request{
      .machines = {written(folder, "one", one), written(folder, "other", other),
                   written(folder, "small", small)},
      .nodes = 1,
      .data = ""};
  const auto machines = compared_by(request);
  CHECK(machines[0].tie);
  CHECK(machines[1].tie);
  CHECK(machines[2].machine == "small");
  CHECK_THAT(machines[2].left_out, Catch::StartsWith("no layout fits into machine small"));
  CHECK_THAT(text(machines, request), Catch::Contains("; a tie, within 3 %"));
}
