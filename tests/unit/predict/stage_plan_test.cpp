// SPDX-License-Identifier: Apache-2.0
#include "predict/stage_plan.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::predict;
using layout::ScheduleKind;

namespace {

/// Two stages of two data-parallel ranks each.
Workload piped(ScheduleKind kind) {
  auto workload = tests::small_workload();
  workload.degrees = {.tensor = 1, .context = 1, .data = 2, .pipeline = 2};
  workload.micro_batches.schedule = kind;
  workload.micro_batches.virtual_stages = layout::has_virtual_stages(kind) ? 2 : 1;
  workload.micro_batches.count = 4;
  workload.program.bucket_elements = 1000;
  return workload;
}

std::vector<StagePlan> planned(const Workload& workload) {
  const auto machine = tests::plain_machine();
  const Placement placement(machine, workload.degrees.world_size());
  const Links links(machine, placement.node_size());
  const OperationCosts costs(machine, workload.program.precision, 1);
  const LayerOperations operations(machine, workload, placement, costs, links);
  const DataExchange data(workload, placement, links);
  return plan_stages(workload, operations, costs, data, *lists_of(workload), Time::zero());
}

auto sums_in(const std::vector<Piece>& pieces) {
  return std::count_if(pieces.begin(), pieces.end(),
                       [](const Piece& piece) { return piece.reduce > Time::zero(); });
}

Time busy(const std::vector<Piece>& pieces) {
  Time sum{};
  for (const auto& piece : pieces) sum += piece.work.busy();
  return sum;
}

}  // namespace

TEST_CASE("sums of gradients begin with the weights' half of the last backward") {
  const auto whole = planned(piped(ScheduleKind::one_forward_one_backward));
  const auto split = planned(piped(ScheduleKind::zero_bubble_h1));
  for (std::size_t stage = 0; stage < whole.size(); ++stage) {
    const auto& chunk = split[stage].chunks.front();
    CHECK(sums_in(chunk.backward) == 0);
    CHECK(sums_in(chunk.last_backward) == 0);
    CHECK(sums_in(chunk.weight) == 0);
    CHECK(sums_in(chunk.last_weight) > 1);
    CHECK(sums_in(chunk.last_weight) == sums_in(whole[stage].chunks.front().last_backward));
  }
}

TEST_CASE("the weights' half of backward waits for no parameters") {
  auto workload = piped(ScheduleKind::zero_bubble_h1);
  workload.program.sharding = Sharding::parameters;
  workload.program.gathers_into_ring = false;
  const auto plan = planned(workload);
  const auto& chunk = plan.front().chunks.front();
  const auto gathers = [](const Piece& piece) { return piece.gather > Time::zero(); };
  CHECK(std::all_of(chunk.backward.begin(), chunk.backward.end(), gathers));
  CHECK(std::none_of(chunk.weight.begin(), chunk.weight.end(), gathers));
}

TEST_CASE("both ends of the model are on the first stage of a V, with one table where it is tied") {
  auto workload = piped(ScheduleKind::zero_bubble_v);
  const auto apart = planned(workload);
  // The head's forward, with its backward, is in the first stage's second chunk.
  CHECK(busy(apart[0].chunks[1].forward) > busy(apart[1].chunks[1].forward));
  // The embedding's backward is in the first chunk's input half.
  CHECK(busy(apart[0].chunks[0].backward) > busy(apart[1].chunks[0].backward));
  workload.shape.tied_head = true;
  const auto tied = planned(workload);
  const auto table = [](Time update) { return seconds_of(update) * 1e9 / 30; };
  const auto of_one_rank = 64.0 * 8;
  CHECK(table(apart[0].end.update - tied[0].end.update) == Approx(of_one_rank));
  CHECK(apart[1].end.update == tied[1].end.update);
}

TEST_CASE("a tied table is on both ends of a straight pipeline") {
  auto workload = piped(ScheduleKind::zero_bubble_h1);
  const auto apart = planned(workload);
  workload.shape.tied_head = true;
  const auto tied = planned(workload);
  CHECK(apart[0].end.update == tied[0].end.update);
  CHECK(apart[1].end.update == tied[1].end.update);
}

TEST_CASE("an update takes its elements' bytes, its products and its decompositions in fp32") {
  auto workload = piped(ScheduleKind::one_forward_one_backward);
  const auto plain = planned(workload).front().end.update;
  workload.program.update_flops = 1e6;
  const auto products = planned(workload).front().end.update;
  // Both peaks are 1 TFLOP/s.
  CHECK(products - plain == time_of(1e-6));
  workload.program.decomposition_flops = 3e6;
  CHECK(planned(workload).front().end.update - products == time_of(3e-6));
}
