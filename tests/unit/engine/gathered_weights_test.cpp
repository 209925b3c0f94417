// SPDX-License-Identifier: Apache-2.0
// Where data-parallel ranks hold shards of parameters alone, units are gathered into two slots of a
// ring, one ahead, and a pass that reads them too early finds no numbers.
#include "trireme/device/kernels.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/sharding/assignment.hpp"

#include "unit/engine/pretended_engine.hpp"
#include "unit/engine/stage_options.hpp"
#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

using namespace trireme;
using device::Purpose;
using layout::Axis;
using testing::GatherLog;
using testing::PretendedEngine;
using Kind = GatherLog::Event::Kind;
using Catch::Matchers::Contains;

namespace {

engine::EngineOptions options_of_level(int zero_level, int layers = 5) {
  auto options = testing::options_of_stage(layout::Mesh::of(1, 2, 1), 0, layers);
  options.model.architecture = model::Architecture::llama;
  options.sharding.zero_level = zero_level;
  options.numerics.seed = 3;
  return options;
}

}  // namespace

TEST_CASE("layers take turns in two places, at the same addresses in each step") {
  PretendedEngine late(options_of_level(3));
  const auto& stage = late.engine->parameters();
  const auto address = [&](int layer) {
    return stage.parameter("layers." + std::to_string(layer) + ".mlp.down.weight").raw();
  };
  CHECK(address(0) == address(2));
  CHECK(address(0) == address(4));
  CHECK(address(1) == address(3));
  CHECK(address(0) != address(1));
  // No layer computes while the table or the head does.
  CHECK(stage.parameter("embedding.weight").raw() == stage.parameter("final_norm.weight").raw());
  const void* first_of_layer = address(0);
  for (const auto& fused : stage.fused_parameters()) {
    if (fused.place != model::Place{model::Place::Kind::layer, 0}) continue;
    first_of_layer = std::min<const void*>(first_of_layer, stage.parameter(fused.name).raw());
  }
  CHECK(first_of_layer == stage.parameter("embedding.weight").raw());
}

TEST_CASE("a unit is gathered while the one before computes, there and back") {
  PretendedEngine late(options_of_level(3));
  late.step();
  const auto& events = late.log.events;
  std::map<const void*, GatherLog::Event> under_way;
  std::size_t most = 0;
  int at_once = 0;
  for (const auto& event : events) {
    if (event.kind == Kind::start) {
      under_way[event.whole] = event;
      most = std::max(most, under_way.size());
      continue;
    }
    if (under_way.at(event.whole).time == event.time) ++at_once;
    under_way.erase(event.whole);
  }
  CHECK(under_way.empty());
  // Table, five layers, head; back, the last but one is still there: table and head lie where the
  // others take turns.
  const auto& stage = late.engine->parameters();
  std::size_t in_largest = 0;
  std::map<model::Place, std::set<std::int64_t>> buckets;
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const auto own = stage.flat().buckets_of_tensor(index);
    for (auto each = own.begin; each < own.end; ++each) {
      buckets[stage.fused_parameters()[index].place].insert(each);
    }
  }
  std::size_t starts = 0;
  std::size_t late_ones = 0;
  for (const auto& [place, of_place] : buckets) {
    in_largest = std::max(in_largest, of_place.size());
    const bool is_layer = place.kind == model::Place::Kind::layer;
    starts += of_place.size() * (is_layer && place.layer != 3 ? 2 : 1);
    // Behind and before table and head, whose place they take.
    const bool comes_late = !is_layer || place.layer == 0 || place.layer == 4;
    if (comes_late) late_ones += of_place.size();
  }
  CHECK(late.log.of(Kind::start).size() == starts);
  CHECK(most <= in_largest);
  CHECK(at_once == static_cast<int>(late_ones));
}

TEST_CASE("blocks of a long vocabulary come while the last layer computes, where it is not") {
  auto options = options_of_level(3);
  // Longer than two layers.
  options.model.vocab_size = 1000;
  PretendedEngine late(options);
  late.step();
  const auto head = late.engine->parameters().parameter("head.weight");
  const auto block = static_cast<std::size_t>(options.sharding.bucket_bytes);
  const auto is_of_head = [&](const GatherLog::Event& event) {
    const auto* const at = static_cast<const std::byte*>(event.whole);
    const auto* const begin = static_cast<const std::byte*>(head.raw());
    return begin <= at && at < begin + head.byte_count();
  };
  // The table lies there, too. The first block begins before the matrix, with a norm.
  const auto starts = late.log.of(Kind::start);
  const auto blocks = std::count_if(starts.begin(), starts.end(), [&](const auto& event) {
    return is_of_head(event) && event.bytes == block;
  });
  CHECK(blocks >= 2 * (1000 * 48 / 4096 - 2));
  std::map<const void*, std::int64_t> begins;
  int early = 0;
  int late_ones = 0;
  for (const auto& event : late.log.events) {
    if (event.kind == Kind::start) {
      begins[event.whole] = event.time;
    } else if (is_of_head(event) && event.bytes == block) {
      ++(begins.at(event.whole) < event.time ? early : late_ones);
    }
  }
  CHECK(early >= 4);
  CHECK(late_ones >= 5);
}

TEST_CASE("halves of a micro-batch, which lease two layers for a moment, gather as far ahead") {
  auto options = testing::options_of_stage(layout::Mesh::of(2, 2, 2), 0, 10);
  options.model.architecture = model::Architecture::llama;
  options.sharding.zero_level = 3;
  options.schedule.micro_batch = 2;
  struct Gathers {
    std::size_t all = 0;
    std::size_t waited_at_once = 0;
    bool operator==(const Gathers&) const = default;
  };
  const auto gathers = [&](layers::TensorOverlap overlap) {
    options.schedule.tensor_overlap = overlap;
    PretendedEngine late(options);
    late.step();
    Gathers found;
    std::map<const void*, std::int64_t> starts;
    for (const auto& event : late.log.events) {
      if (event.kind == Kind::start) {
        starts[event.whole] = event.time;
        ++found.all;
      } else if (starts.at(event.whole) == event.time) {
        ++found.waited_at_once;
      }
    }
    return found;
  };
  const auto whole = gathers(layers::TensorOverlap::plain);
  CHECK(whole.all > 50);
  CHECK(whole.waited_at_once < 20);
  CHECK(gathers(layers::TensorOverlap::halves) == whole);
}

TEST_CASE("a step after an update reads what was updated, and an evaluation does") {
  auto options = options_of_level(3);
  PretendedEngine late(options);
  const auto first = late.step();
  const auto second = late.step();
  CHECK(second < first);
  late.fill();
  const auto evaluated = late.engine->evaluate();
  CHECK(evaluated.loss_sum / static_cast<double>(evaluated.tokens) < second);
  CHECK(late.log.pending == 0);
}

TEST_CASE("a gather of a unit that fails ends the step in its words") {
  PretendedEngine late(options_of_level(3));
  late.log.fails_at = 3;
  CHECK_THROWS_WITH(late.step(), Contains("a peer is gone"));
  late.engine.reset();
}

TEST_CASE("an error in a pass reaches the caller in its words, though groups are broken by then") {
  auto options = testing::options_of_stage(layout::Mesh::of(2, 2, 2), 0, 10);
  options.model.architecture = model::Architecture::llama;
  options.schedule.micro_batch = 2;
  options.schedule.tensor_overlap = layers::TensorOverlap::halves;
  for (const int level : {2, 3}) {
    options.sharding.zero_level = level;
    PretendedEngine whole(options);
    const auto before = whole.kernels.issued;
    whole.fill();
    whole.engine->run_schedule();
    const auto issued = whole.kernels.issued - before;
    // In forward and backward, at leases of one layer and of two.
    constexpr std::int64_t points = 24;
    for (std::int64_t point = 0; point < points; ++point) {
      PretendedEngine late(options);
      late.kernels.fails_at = late.kernels.issued + point * issued / points;
      late.log.is_broken = [&late] { return late.kernels.failed; };
      late.fill();
      CAPTURE(level, point);
      CHECK_THROWS_WITH(late.engine->run_schedule(), Contains("a kernel has failed"));
      late.engine.reset();
    }
  }
}

TEST_CASE("level 3 holds shards and the ring of units, to the byte") {
  engine::EngineOptions options;
  options.model = tests::llama3_8b();
  options.sharding.mesh = layout::Mesh::of(1, 8, 1);
  options.schedule.sequence_length = 8192;
  options.numerics.dtype = device::DType::bf16;
  options.memory.recompute = layers::Recompute{layers::Activation::layer};
  const auto bytes = [&](int level, Purpose purpose) {
    options.sharding.zero_level = level;
    return engine::measure(options)[static_cast<std::size_t>(purpose)];
  };
  // Elements: two norms and the matrices of attention and MLP; the table, or the head and its norm.
  const std::size_t layer = 2 * 4096 + 4096 * (4096 + 2 * 1024 + 4096 + 3 * 14336);
  const std::size_t head = std::size_t{128256 + 1} * 4096;
  const std::size_t all = 32 * layer + 2 * head - 4096;
  const std::size_t rotary = 2 * 8192 * 64 * 4;
  CHECK(bytes(0, Purpose::parameters) == 2 * all + rotary);
  // The head is longer than two layers.
  CHECK(bytes(3, Purpose::parameters) == 2 * (all / 8 + head) + rotary);
  CHECK(bytes(3, Purpose::gradients) - bytes(0, Purpose::gradients) + 4 * all ==
        4 * (all / 8 + head));
  CHECK(bytes(3, Purpose::optimizer) == bytes(1, Purpose::optimizer));
  // Beside two layers, which take turns while the head waits for its reduction.
  CHECK(bytes(2, Purpose::parameters) == bytes(0, Purpose::parameters));
  CHECK(bytes(2, Purpose::gradients) - bytes(0, Purpose::gradients) + 4 * all ==
        4 * (all / 8 + 2 * layer + head));
  CHECK(bytes(2, Purpose::optimizer) == bytes(1, Purpose::optimizer));
}

TEST_CASE("the traffic of gradients has none of the weights that passes gather") {
  for (const int level : {0, 1, 2, 3}) {
    CAPTURE(level);
    const auto options = options_of_level(level);
    PretendedEngine late(options);
    const auto elements = late.engine->parameters().flat().size;
    const int times = level == 2 ? options.schedule.micro_batches : 1;
    CHECK(engine::traffic_of(options).gradients == static_cast<std::size_t>(4 * times * elements));
  }
}

TEST_CASE("gradients of a micro-batch are not reduced where those of weights come later") {
  auto options = testing::options_of_stage(layout::Mesh::of(2, 2, 1), 0, 4);
  options.sharding.zero_level = 2;
  options.schedule.kind = layout::ScheduleKind::zero_bubble_h1;
  const auto status = engine::check(options);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::usage);
  CHECK_THAT(status.failure().text,
             Contains("parallel.zero_level = 2") && Contains("parallel.schedule = zb-h1"));
  options.schedule.kind = layout::ScheduleKind::one_forward_one_backward;
  CHECK(engine::check(options).ok());
}

TEST_CASE("equal shards of whole matrices are refused at level 3, and nobody chooses them") {
  auto options = options_of_level(3);
  options.sharding.assignment = ownership::Assignment::padded;
  // AdamW has no matrices to own.
  CHECK(engine::check(options).ok());
  options.sharding.rule.kind = optim::RuleKind::muon;
  const auto status = engine::check(options);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::usage);
  CHECK_THAT(status.failure().text, Contains("optimizer.assignment = padded") &&
                                        Contains("parallel.zero_level = 3") &&
                                        Contains("optimizer.name = muon"));
  auto below = options;
  below.sharding.zero_level = 1;
  CHECK(engine::check(below).ok());
  for (const bool on_gpus : {false, true}) {
    sharding::choose_assignment(options.sharding, options.model, options.numerics.dtype,
                                {.parameters = 1e6, .tokens = 1e3}, on_gpus);
    CHECK(options.sharding.assignment != ownership::Assignment::padded);
    CHECK(engine::check(options).ok());
  }
  // One rank divides nothing.
  options.sharding.assignment = ownership::Assignment::padded;
  options.sharding.mesh = layout::Mesh::of(1, 1, 1);
  options.sharding.rank = base::Rank{0};
  CHECK(engine::check(options).ok());
}
