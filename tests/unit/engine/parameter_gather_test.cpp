// SPDX-License-Identifier: Apache-2.0
// Parameters of other data-parallel ranks are gathered while forward computes: a layer that reads
// them too early finds no numbers.
#include "trireme/device/kernels.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"

#include "unit/engine/pretended_engine.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

using namespace trireme;
using layout::Axis;
using testing::GatherLog;
using testing::Gathers;
using testing::PretendedEngine;
using Kind = GatherLog::Event::Kind;
using Catch::Matchers::Contains;

namespace {

engine::EngineOptions options_for(const layout::Mesh& mesh, int stage, int virtual_stages = 1) {
  auto options = testing::options_of_stage(mesh, stage, 8);
  options.model.architecture = model::Architecture::gpt2;
  options.model.tie_word_embeddings = true;
  if (virtual_stages > 1) options.schedule.kind = layout::ScheduleKind::interleaved;
  options.schedule.virtual_stages = virtual_stages;
  options.sharding.zero_level = 1;
  options.numerics.seed = 3;
  return options;
}

struct Layout {
  int stages;
  int virtual_stages;
};
const Layout layouts[] = {{1, 1}, {2, 1}, {2, 2}, {4, 2}};

template <typename Act>
void each_rank(const Act& act) {
  for (const auto& [stages, virtual_stages] : layouts) {
    for (int stage = 0; stage < stages; ++stage) {
      CAPTURE(stages, virtual_stages, stage);
      act(options_for(layout::Mesh::of(stages, 2, 1), stage, virtual_stages));
    }
  }
}

}  // namespace

TEST_CASE("no layer, embedding, head or tied table reads parameters before they are gathered") {
  each_rank([](const engine::EngineOptions& options) {
    PretendedEngine at_once(options, Gathers::at_once);
    PretendedEngine late(options);
    for (int step = 0; step < 3; ++step) {
      for (auto* each : {&at_once, &late}) {
        each->schedule();
        each->update();
      }
    }
    CHECK(late.observed == at_once.observed);
    // Other stages' gradients are pretended to be zero; zero times no number is none either.
    const bool is_last = late.engine->is_last_stage();
    CHECK((is_last ? late.observed.back() > 0 : late.observed.back() == 0));
  });
}

TEST_CASE("gathers start behind the update, one for each bucket, and forward waits one by one") {
  each_rank([](const engine::EngineOptions& options) {
    PretendedEngine late(options);
    const auto& buckets = late.engine->parameters().flat().buckets;
    REQUIRE(buckets.size() > 2);
    late.schedule();
    CHECK(late.log.events.empty());
    late.update();
    const auto starts = late.log.of(Kind::start);
    CHECK(starts.size() == buckets.size());
    CHECK(late.log.of(Kind::wait).empty());
    std::size_t bytes = 0;
    for (const auto& start : starts) bytes += start.bytes;
    CHECK(bytes == 4 * static_cast<std::size_t>(late.engine->parameters().flat().size));
    const auto before = late.kernels.issued;
    late.schedule();
    const auto waits = late.log.of(Kind::wait);
    REQUIRE(waits.size() == starts.size());
    CHECK(late.log.of(Kind::start).size() == starts.size());
    int apart = 0;
    for (std::size_t index = 0; index < waits.size(); ++index) {
      CHECK(waits[index].whole == starts[index].whole);
      CHECK(waits[index].time > before);
      if (index > 0 && waits[index].time > waits[index - 1].time) ++apart;
    }
    // Layers' kernels come between the waits for theirs and those for the next.
    CHECK(apart >= 1);
  });
}

TEST_CASE("what reads or writes parameters between steps waits for all of them") {
  const std::vector<std::function<void(engine::Engine&)>> readers{
      [](engine::Engine& engine) { engine.parameter_parts(); },
      [](engine::Engine& engine) { engine.state_parts(); },
      [](engine::Engine& engine) { engine.saved_shards(); },
      [](engine::Engine& engine) { engine.parameter_hashes(); },
      [](engine::Engine& engine) { engine.read_parameters([] {}); },
      [](engine::Engine& engine) { engine.evaluate(); },
      [](engine::Engine& engine) { engine.state_changed(1); }};
  const auto options = options_for(layout::Mesh::of(1, 2, 1), 0);
  for (const auto& read : readers) {
    PretendedEngine late(options);
    late.schedule();
    late.update();
    REQUIRE(late.log.pending > 0);
    read(*late.engine);
    CHECK(late.log.pending == 0);
  }
  PretendedEngine late(options);
  late.schedule();
  late.update();
  late.update();
  const auto buckets = late.engine->parameters().flat().buckets.size();
  CHECK(late.log.pending == static_cast<int>(buckets));
  CHECK(late.log.of(Kind::wait).size() == buckets);
  late.engine.reset();
  CHECK(late.log.pending == 0);
}

TEST_CASE("an evaluation behind an update finds its parameters") {
  const auto options = options_for(layout::Mesh::of(1, 2, 1), 0);
  PretendedEngine at_once(options, Gathers::at_once);
  PretendedEngine late(options);
  for (auto* each : {&at_once, &late}) {
    each->schedule();
    each->update();
  }
  CHECK(late.engine->evaluate().loss_sum == at_once.engine->evaluate().loss_sum);
}

TEST_CASE("a gather that fails ends forward in its words, and no other is waited for") {
  PretendedEngine late(options_for(layout::Mesh::of(1, 2, 1), 0), Gathers::late);
  late.schedule();
  late.update();
  late.log.fails_at = 1;
  CHECK_THROWS_WITH(late.schedule(), Contains("a peer is gone"));
  const auto waits = late.log.of(Kind::wait).size();
  CHECK(waits == 2);
  late.engine.reset();
  CHECK(late.log.of(Kind::wait).size() == waits);
}

TEST_CASE("groups whose data the host moves are waited for in the update") {
  const auto options = options_for(layout::Mesh::of(1, 2, 1), 0);
  PretendedEngine at_once(options, Gathers::at_once);
  at_once.schedule();
  at_once.update();
  CHECK_FALSE(at_once.engine->run_schedule().parameters_seconds.has_value());
}
