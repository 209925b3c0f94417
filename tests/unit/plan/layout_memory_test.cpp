// SPDX-License-Identifier: Apache-2.0
#include "plan/search/layout_memory.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/plan/memory_plan.hpp"

#include "small_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <numeric>

using namespace trireme;
using namespace trireme::plan;
using tests::all_layouts;
using tests::model_of;
using tests::small_config;

namespace {

constexpr auto everything = std::numeric_limits<std::size_t>::max();

engine::EngineOptions options_with(const config::Config& config, const LayoutChoice& choice) {
  return base::value_or_throw(engine::options_from(tests::with_layout(config, choice),
                                                   model_of(config), choice.mesh(), base::Rank{0}));
}

/// Compares every so many layouts with what a plan of all ranks measures, one rank after the other.
void compare_with_plans(const config::Config& config, int ranks, std::size_t every) {
  const auto layouts = all_layouts(config, ranks);
  REQUIRE(layouts.size() > 20 * every);
  LayoutMemory of_ranks({}, LayoutMemory::Owner::rank);
  LayoutMemory of_nodes({}, LayoutMemory::Owner::node);
  for (std::size_t index = 0; index < layouts.size(); index += every) {
    const auto& choice = layouts[index];
    CAPTURE(text(choice));
    const auto planned = base::value_or_throw(
        plan_memory(tests::with_layout(config, choice), model_of(config), ranks));
    std::vector<std::size_t> by_stage(static_cast<std::size_t>(choice.pipeline));
    std::size_t all = 0;
    for (const auto& rank : planned.ranks) {
      const auto bytes = engine::total_bytes(rank.bytes);
      auto& largest = by_stage[static_cast<std::size_t>(
          choice.mesh().coordinate(layout::Axis::pipeline, rank.rank))];
      largest = std::max(largest, bytes);
      all += bytes;
    }
    const auto options = options_with(config, choice);
    CHECK(of_ranks.largest_by_stage(options) == by_stage);
    const auto needed = of_ranks.needed(options, everything);
    CHECK(needed == *std::max_element(by_stage.begin(), by_stage.end()));
    CHECK(of_ranks.least(options) <= needed);
    CHECK(of_nodes.needed(options, everything) == all);
    CHECK(of_nodes.least(options) <= all);
    // Measuring may end early where a layout does not fit.
    CHECK(of_ranks.needed(options, needed - 1) > needed - 1);
  }
}

}  // namespace

TEST_CASE("memory of a layout is its plan's, to the byte") {
  compare_with_plans(small_config(), 4, 7);
  compare_with_plans(small_config({"numerics.precision=bf16", "train.global_batch=32"}), 8, 97);
}

TEST_CASE("memory of a layout with one table for embedding and head is its plan's, to the byte") {
  compare_with_plans(small_config({"model.tie_word_embeddings=true"}), 4, 13);
}

TEST_CASE("the least that the first of several stages takes counts its table") {
  const auto config = small_config({"model.vocab_size=20000"});
  constexpr std::size_t table_elements = 20000 * 64;
  // Weights, gradients and two states in fp32, each rank's own.
  constexpr std::size_t copies = 4;
  LayoutMemory memory({}, LayoutMemory::Owner::rank);
  const auto options = options_with(config, {.ranks = 2, .pipeline = 2, .micro_batch = 1});
  CHECK(memory.least(options) > copies * sizeof(float) * table_elements * 99 / 100);
  CHECK(memory.least(options) <= memory.needed(options, everything));
}

TEST_CASE("memory of owners of matrices is their plan's, to the byte") {
  compare_with_plans(small_config({"optimizer.name=muon"}), 4, 31);
}

TEST_CASE("memory of a layout on GPUs is its plan's, to the byte") {
  compare_with_plans(small_config({"numerics.backend=cuda", "numerics.precision=bf16",
                                   "numerics.cuda_graphs=true"}),
                     4, 41);
}

TEST_CASE("memory of a layout in fp8 is its plan's, to the byte") {
  compare_with_plans(small_config({"numerics.backend=cuda", "numerics.precision=fp8",
                                   "numerics.cuda_graphs=false", "model.intermediate_size=128"}),
                     4, 41);
}

TEST_CASE("the least that a layout takes in fp8 does not depend on those asked about before it") {
  const auto config =
      small_config({"numerics.backend=cuda", "numerics.precision=fp8", "numerics.cuda_graphs=false",
                    "model.intermediate_size=256", "train.sequence_length=4"});
  // Eight micro-batches read weights from copies, one alone does not.
  const auto kept = options_with(config, {.ranks = 1, .micro_batch = 1});
  const auto once = options_with(config, {.ranks = 1, .micro_batch = 8});
  LayoutMemory alone({}, LayoutMemory::Owner::rank);
  LayoutMemory after({}, LayoutMemory::Owner::rank);
  after.least(kept);
  CHECK(after.least(once) == alone.least(once));
}

TEST_CASE("stages whose gradients of weights wait differently are not alike") {
  const auto config =
      small_config({"model.vocab_size=512", "model.hidden_size=32", "model.intermediate_size=64",
                    "model.head_dim=8", "model.num_hidden_layers=20", "train.sequence_length=128",
                    "model.max_position_embeddings=128", "train.global_batch=13"});
  const LayoutChoice choice{.ranks = 10,
                            .pipeline = 10,
                            .virtual_stages = 2,
                            .schedule = layout::ScheduleKind::zero_bubble_v,
                            .micro_batch = 1};
  const auto planned = base::value_or_throw(
      plan_memory(tests::with_layout(config, choice), model_of(config), choice.ranks));
  LayoutMemory memory({}, LayoutMemory::Owner::rank);
  const auto by_stage = memory.largest_by_stage(options_with(config, choice));
  REQUIRE(by_stage.size() == planned.ranks.size());
  for (std::size_t stage = 0; stage < by_stage.size(); ++stage) {
    CAPTURE(stage);
    CHECK(by_stage[stage] == engine::total_bytes(planned.ranks[stage].bytes));
  }
}

TEST_CASE("layouts share what is measured, and most of it is never run") {
  const auto config = small_config();
  const auto layouts = all_layouts(config, 8);
  LayoutMemory memory({}, LayoutMemory::Owner::rank);
  for (const auto& choice : layouts) memory.needed(options_with(config, choice), everything);
  CHECK(memory.measured() < 2 * layouts.size());
  const auto before = memory.measured();
  for (const auto& choice : layouts) memory.needed(options_with(config, choice), everything);
  CHECK(memory.measured() == before);
}
