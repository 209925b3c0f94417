// SPDX-License-Identifier: Apache-2.0
// The prediction's gathers and reductions of ZeRO level 3 beside those that the engine starts.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/time_plan.hpp"

#include "predict/stage_plan.hpp"
#include "unit/engine/tensor_timeline.hpp"
#include "unit/predict/machines.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using layout::ActionKind;
using layout::Axis;
using layout::ScheduleKind;
using predict::Time;

namespace {

/// Bytes that a rank sends in a second.
constexpr double sent_a_second = 1e12;

std::string started_text(Collective::Kind kind, double bytes) {
  const bool gathers = kind == Collective::Kind::all_gather;
  // Norms, which are not predicted, are less than a hundredth of a layer.
  return base::format("{} of 2^{:.1f} bytes", gathers ? "gather" : "reduction", std::log2(bytes));
}

/// Pretended kernels that nobody looks at.
struct Nobody final : telemetry::SpanObserver {
  void begin(telemetry::SpanKind, const telemetry::SpanPlace&, std::uint64_t) override {}
  void end() override {}
};

std::vector<std::string> started_by_engine(const engine::EngineOptions& options) {
  std::vector<std::string> list;
  double seconds = 0;
  const auto kernels = device::make_pricing_kernels(rates, seconds);
  Nobody nobody;
  run_observed(
      options, *kernels, nobody,
      [&](const Collective& collective) {
        // Counts of norms' gradients and the like are no weights.
        if (collective.bytes > 1e6) {
          list.push_back(started_text(collective.kind, collective.bytes));
        }
        return comm::Work();
      },
      Axis::data);
  return list;
}

const std::vector<predict::Piece>& pieces_of(const predict::ChunkPlan& plan,
                                             const layout::Action& action, int micro_batches) {
  const bool is_last = action.micro_batch + 1 == micro_batches;
  if (action.kind == ActionKind::forward) return plan.forward;
  if (action.kind == ActionKind::backward_weight) return is_last ? plan.last_weight : plan.weight;
  return is_last ? plan.last_backward : plan.backward;
}

std::vector<std::string> predicted_of(const engine::EngineOptions& options) {
  auto machine = plain_machine();
  machine.node.gpus = options.sharding.mesh.world_size();
  machine.inside.rate = sent_a_second;
  const auto workload = plan::workload_of(options, machine);
  const predict::Placement placement(machine, workload.degrees.world_size());
  const predict::Links links(machine, placement.node_size());
  const predict::OperationCosts costs(machine, workload.program.precision, 1);
  const predict::LayerOperations operations(machine, workload, placement, costs, links);
  const predict::DataExchange data(workload, placement, links);
  const auto lists = base::value_or_throw(predict::lists_of(workload));
  const auto plans = plan_stages(workload, operations, costs, data, lists, Time::zero());
  const auto stage = static_cast<std::size_t>(
      options.sharding.mesh.coordinate(Axis::pipeline, options.sharding.rank));
  const auto& actions = lists.schedule.actions[stage];
  std::vector<std::string> list;
  const auto add = [&](Collective::Kind kind, Time time) {
    if (time == Time::zero()) return;
    list.push_back(started_text(kind, sent_a_second * predict::seconds_of(time)));
  };
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const auto& action = actions[index];
    const auto& chunk = plans[stage].chunks[static_cast<std::size_t>(action.virtual_stage)];
    const auto& pieces = pieces_of(chunk, action, workload.micro_batches.count);
    for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
      const auto& turn = plans[stage].turns[index][piece];
      add(Collective::Kind::all_gather, turn.own);
      add(Collective::Kind::all_gather, turn.ahead);
      add(Collective::Kind::reduce_scatter, pieces[piece].reduce);
    }
  }
  return list;
}

struct Divided {
  int pipeline = 1;
  ScheduleKind schedule = ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  int layers = 6;
  bool tied = false;
};

engine::EngineOptions divided(const Divided& layout, int stage) {
  engine::EngineOptions options;
  options.model = llama3_8b();
  options.model.num_hidden_layers = layout.layers;
  options.model.tie_word_embeddings = layout.tied;
  auto& sharding = options.sharding;
  sharding.mesh = layout::Mesh::of(layout.pipeline, 2, 1);
  sharding.rank = sharding.mesh.moved(base::Rank{0}, Axis::pipeline, stage);
  sharding.zero_level = 3;
  // Each unit in one bucket.
  sharding.bucket_bytes = std::int64_t{1} << 34;
  options.schedule.kind = layout.schedule;
  options.schedule.virtual_stages = layout.virtual_stages;
  options.schedule.micro_batches = 4;
  options.schedule.sequence_length = 16;
  options.numerics.dtype = device::DType::bf16;
  return options;
}

}  // namespace

TEST_CASE("gathers and reductions of level 3 are predicted in the engine's order") {
  const std::vector<Divided> layouts{
      {},
      {.layers = 2},
      {.tied = true},
      {.pipeline = 2},
      {.pipeline = 2, .schedule = ScheduleKind::gpipe},
      {.pipeline = 2, .schedule = ScheduleKind::interleaved, .virtual_stages = 2, .layers = 12},
      {.pipeline = 2, .schedule = ScheduleKind::zero_bubble_h1},
      {.pipeline = 2, .schedule = ScheduleKind::zero_bubble_v, .virtual_stages = 2, .layers = 12}};
  for (const auto& layout : layouts) {
    for (int stage = 0; stage < layout.pipeline; ++stage) {
      CAPTURE(layout.pipeline, layout::name(layout.schedule), layout.layers, layout.tied, stage);
      const auto options = divided(layout, stage);
      const auto started = started_by_engine(options);
      CHECK(!started.empty());
      CHECK(predicted_of(options) == started);
    }
  }
}
