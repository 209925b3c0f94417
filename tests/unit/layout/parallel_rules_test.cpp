// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/parallel_rules.hpp"

#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <set>

using namespace trireme;
using layout::ParallelArrangement;
using layout::ParallelRule;
using layout::ScheduleKind;

namespace {

std::vector<ParallelRule> broken(const ParallelArrangement& arrangement) {
  std::vector<ParallelRule> rules;
  for (const auto& violation : layout::violations(arrangement)) rules.push_back(violation.rule);
  return rules;
}

using Rules = std::vector<ParallelRule>;

/// tp2 x pp2 x dp2 of a small model: breaks nothing.
ParallelArrangement whole() {
  return {.world_size = 8,
          .tensor = 2,
          .pipeline = 2,
          .data = 2,
          .sequence = true,
          .schedule = ScheduleKind::interleaved,
          .virtual_stages = 2,
          .stage_layers = std::vector<std::int64_t>{},
          .layers = 4,
          .heads = 4,
          .kv_heads = 2,
          .vocabulary = 64,
          .intermediate = 32,
          .micro_batch = 1,
          .global_batch = 8,
          .sequence_length = 16};
}

}  // namespace

TEST_CASE("nothing known breaks nothing, and neither does what fits") {
  CHECK(broken({}).empty());
  CHECK(broken(whole()).empty());
}

TEST_CASE("each rule is broken by itself") {
  const auto broken_by = [](auto change) {
    auto arrangement = whole();
    change(arrangement);
    return broken(arrangement);
  };
  using A = ParallelArrangement;
  CHECK(broken_by([](A& a) { a.tensor = 0; }) == Rules{ParallelRule::degree_below_one});
  CHECK(broken_by([](A& a) { a.world_size = 9; }) == Rules{ParallelRule::world_not_filled});
  CHECK(broken_by([](A& a) { a.world_size = 16; }) == Rules{ParallelRule::world_not_filled});
  CHECK(broken_by([](A& a) { a.heads = 5; }) == Rules{ParallelRule::heads_not_divided});
  CHECK(broken_by([](A& a) { a.kv_heads = 3; }) == Rules{ParallelRule::kv_heads_not_divided});
  CHECK(broken_by([](A& a) { a.kv_heads = 1; }).empty());
  CHECK(broken_by([](A& a) { a.vocabulary = 1; }) == Rules{ParallelRule::rows_too_few});
  CHECK(broken_by([](A& a) { a.intermediate = 1; }) == Rules{ParallelRule::rows_too_few});
  CHECK(broken_by([](A& a) { a.sequence_length = 15; }) == Rules{ParallelRule::rows_not_divided});
  CHECK(broken_by([](A& a) {
          a.sequence_length = 15;
          a.sequence = false;
        }).empty());
  const auto divide_sequences = [](A& a, int context) {
    a.context = context;
    a.world_size = *a.world_size * context;
  };
  CHECK(broken_by([&](A& a) { divide_sequences(a, 2); }).empty());
  CHECK(broken_by([&](A& a) {
          divide_sequences(a, 3);
          a.sequence = false;
        }) == Rules{ParallelRule::chunks_not_divided});
  CHECK(broken_by([&](A& a) {
          divide_sequences(a, 3);
          a.sequence_length = 6;
          a.tensor = 4;
          a.pipeline = 2;
          a.data = 1;
        }) == Rules{ParallelRule::rows_not_divided});
  CHECK(broken_by([](A& a) { a.schedule = ScheduleKind::gpipe; }) ==
        Rules{ParallelRule::virtual_without_interleaved});
  CHECK(broken_by([](A& a) { a.virtual_stages = 1; }) ==
        Rules{ParallelRule::interleaved_without_virtual});
  CHECK(broken_by([](A& a) {
          a.pipeline = 1;
          a.world_size = 4;
        }) == Rules{ParallelRule::interleaved_on_one_stage});
  CHECK(broken_by([](A& a) { a.schedule = ScheduleKind::zero_bubble_v; }).empty());
  CHECK(broken_by([](A& a) {
          a.schedule = ScheduleKind::zero_bubble_v;
          a.virtual_stages = 3;
          a.layers = 6;
        }) == Rules{ParallelRule::v_without_two_chunks});
  CHECK(broken_by([](A& a) { a.schedule = ScheduleKind::zero_bubble_h1; }) ==
        Rules{ParallelRule::virtual_without_interleaved});
  CHECK(broken_by([](A& a) { a.layers = 3; }) == Rules{ParallelRule::too_many_positions});
  CHECK(broken_by([](A& a) {
          a.stage_layers = {1, 2, 1};
        }) == Rules{ParallelRule::stage_layers_count});
  CHECK(broken_by([](A& a) { a.stage_layers = {0, 2, 2, 0}; }).empty());
  CHECK(broken_by([](A& a) {
          a.stage_layers = {1, 0, 3, 0};
        }) == Rules{ParallelRule::stage_layers_empty});
  CHECK(broken_by([](A& a) {
          a.stage_layers = {1, 1, 1, 2};
        }) == Rules{ParallelRule::stage_layers_sum});
  CHECK(broken_by([](A& a) { a.global_batch = 9; }) == Rules{ParallelRule::batch_not_divided});
  CHECK(broken_by([](A& a) { a.micro_batch = 3; }) == Rules{ParallelRule::batch_not_divided});
  CHECK(broken_by([](A& a) { a.global_batch = 6; }) == Rules{ParallelRule::rounds_not_filled});
  CHECK(broken_by([](A& a) { a.global_batch = std::int64_t{1} << 30; }) ==
        Rules{ParallelRule::too_many_actions});
}

TEST_CASE("data parallelism that is left open is what the others leave, in the batches, too") {
  auto arrangement = whole();
  arrangement.data.reset();
  CHECK(broken(arrangement).empty());
  arrangement.global_batch = 9;
  CHECK(broken(arrangement) == Rules{ParallelRule::batch_not_divided});
  CHECK(layout::text(layout::violations(arrangement).front(), layout::citation(arrangement)) ==
        "train.global_batch = 9 is not a multiple of train.micro_batch = 1 times 2 replicas (each "
        "replica takes whole micro-batches); try 8 or 10");
}

TEST_CASE("numbers beyond any machine break rules and nothing else") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  ParallelArrangement huge = whole();
  for (const auto& key : layout::arrangement_keys()) {
    if (key.number != nullptr) huge.*key.number = most;
  }
  huge.world_size = most;
  huge.stage_layers = std::vector<std::int64_t>{most, most, most};
  for (const auto& violation : layout::violations(huge)) {
    CHECK_FALSE(layout::text(violation, layout::citation(huge)).empty());
  }
  CHECK_FALSE(broken(huge).empty());
}

TEST_CASE("too few layers for two virtual stages are sent to a schedule that has one") {
  auto arrangement = whole();
  arrangement.layers = 1;
  for (const auto kind : {ScheduleKind::interleaved, ScheduleKind::zero_bubble_v}) {
    arrangement.schedule = kind;
    const auto found = layout::violations(arrangement);
    REQUIRE_FALSE(found.empty());
    CHECK(found[0].rule == ParallelRule::too_many_positions);
    CHECK(layout::text(found[0], layout::citation(arrangement))
              .ends_with("set parallel.schedule=1f1b and parallel.virtual_stages=1"));
  }
}

TEST_CASE("a sentence cites quantities and names what sets them in its surface's words") {
  auto arrangement = whole();
  arrangement.schedule = ScheduleKind::gpipe;
  const auto found = layout::violations(arrangement);
  REQUIRE(found.size() == 1);
  CHECK(found[0].quantities ==
        std::vector{layout::Quantity::virtual_stages, layout::Quantity::schedule});
  CHECK(layout::text(found[0], layout::citation(arrangement)) ==
        "parallel.virtual_stages = 2 does not go with parallel.schedule = gpipe (only schedules "
        "interleaved and zb-v give a stage more than one piece of the model); set "
        "parallel.schedule=interleaved or parallel.virtual_stages=1");
  const auto shouted = layout::text(
      found[0], [](layout::Quantity quantity) { return base::format("<{}>", key_of(quantity)); },
      [](layout::Quantity) { return std::string("--option"); });
  CHECK(shouted.starts_with("<parallel.virtual_stages> does not go with <parallel.schedule> ("));
  CHECK(shouted.ends_with("set --option=interleaved or --option=1"));
  CHECK(layout::check(arrangement).failure().code == base::ExitCode::usage);
  arrangement = whole();
  arrangement.world_size = 9;
  CHECK(layout::check(arrangement).failure().code == base::ExitCode::launch);
}
