// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/choose_recompute.hpp"

#include "trireme/engine/measure.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using engine::EngineOptions;
using layers::Activation;
using layers::Recompute;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

std::size_t total(const EngineOptions& options) {
  return engine::total_bytes(engine::measure(options));
}

/// Four layers in two stages of two tensor-parallel ranks.
EngineOptions small() {
  EngineOptions options;
  options.model = llama3_8b();
  options.model.num_hidden_layers = 8;
  options.model.hidden_size = 256;
  options.model.intermediate_size = 896;
  options.model.num_attention_heads = 4;
  options.model.num_key_value_heads = 2;
  options.model.head_dim = 64;
  options.model.vocab_size = 1000;
  options.sharding.mesh = layout::Mesh::of(2, 1, 2);
  options.sharding.sequence_parallel = model::SequenceParallel::on;
  options.schedule.stage_layers = {4, 4};
  options.schedule.sequence_length = 2048;
  options.schedule.micro_batches = 4;
  options.numerics.dtype = device::DType::bf16;
  return options;
}

std::vector<Recompute> every_choice(int layers) {
  std::vector<Recompute> choices;
  for (int kinds = 0; kinds < 16; ++kinds) {
    for (int whole = 0; whole <= layers; ++whole) {
      Recompute set;
      for (int kind = 0; kind < 4; ++kind) {
        if ((kinds & (1 << kind)) != 0) set.add(static_cast<Activation>(kind));
      }
      if (whole > 0) set.add(Activation::layer, whole);
      choices.push_back(set);
    }
  }
  return choices;
}

double seconds(const EngineOptions& options, const Recompute& recompute) {
  return engine::predicted_seconds(engine::with_recompute(options, recompute));
}

}  // namespace

TEST_CASE("the cheapest of all sets that free enough is chosen") {
  const auto options = small();
  const auto kept = total(options);
  const auto plain = seconds(options, {});
  struct Option {
    std::size_t freed;
    double longer;
  };
  std::vector<Option> all;
  for (const auto& choice : every_choice(4)) {
    const auto left = total(engine::with_recompute(options, choice));
    all.push_back({left < kept ? kept - left : 0, seconds(options, choice) / plain - 1});
  }
  const auto most = total(options) - total(engine::with_recompute(options, {Activation::layer}));
  REQUIRE(most > 20 * mebibyte);
  std::vector<std::string> chosen_texts;
  for (std::size_t wanted = mebibyte; wanted <= most; wanted += most / 16) {
    CAPTURE(wanted);
    double least = std::numeric_limits<double>::infinity();
    const auto bytes = wanted / mebibyte * mebibyte;
    for (const auto& option : all) {
      if (option.freed >= bytes) least = std::min(least, option.longer);
    }
    const auto chosen =
        engine::choose_recompute(options, static_cast<std::int32_t>(wanted / mebibyte), total);
    REQUIRE(chosen.ok());
    CAPTURE(chosen->recompute.text());
    CHECK(chosen->freed_bytes >= bytes);
    CHECK(chosen->freed_bytes == kept - total(engine::with_recompute(options, chosen->recompute)));
    CHECK(chosen->longer == Approx(least).epsilon(0.02));
    if (chosen_texts.empty() || chosen_texts.back() != chosen->recompute.text()) {
      chosen_texts.push_back(chosen->recompute.text());
    }
  }
  // From norms to whole layers, by several steps.
  CHECK(chosen_texts.size() >= 4);
}

TEST_CASE("nothing is computed again where all fits, and what never fits is refused") {
  const auto options = small();
  const auto nothing = engine::choose_recompute(options, 0, total);
  REQUIRE(nothing.ok());
  CHECK(nothing->recompute == Recompute{});
  CHECK(nothing->longer == 0);
  const auto refused = engine::choose_recompute(options, 1 << 20, total);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().text.find("train.memory_limit") != std::string::npos);
  CHECK(refused.failure().text.find("micro_batch") != std::string::npos);
}

TEST_CASE("all ranks of a stage choose the same") {
  auto options = small();
  options.sharding.mesh = layout::Mesh::of(2, 3, 2);
  options.sharding.zero_level = 1;
  options.sharding.rule.kind = optim::RuleKind::muon;
  std::vector<Recompute> chosen;
  for (int rank = 0; rank < 12; ++rank) {
    options.sharding.rank = base::Rank{rank};
    const auto choice = engine::choose_recompute(options, 8, total);
    REQUIRE(choice.ok());
    chosen.push_back(choice->recompute);
  }
  const auto& mesh = options.sharding.mesh;
  for (int rank = 0; rank < 12; ++rank) {
    const auto stage = mesh.coordinate(layout::Axis::pipeline, base::Rank{rank});
    CHECK(chosen[static_cast<std::size_t>(rank)] == chosen[static_cast<std::size_t>(stage * 6)]);
  }
}

TEST_CASE("a choice frees what it says, however many micro-batches a step has, in FP8 as well") {
  for (const auto kind : {layout::ScheduleKind::one_forward_one_backward,
                          layout::ScheduleKind::gpipe, layout::ScheduleKind::interleaved}) {
    for (const int micro_batches : {2, 8, 64}) {
      auto options = small();
      options.schedule.kind = kind;
      options.schedule.virtual_stages = kind == layout::ScheduleKind::interleaved ? 2 : 1;
      if (kind == layout::ScheduleKind::interleaved) options.schedule.stage_layers = {2, 2, 2, 2};
      options.schedule.micro_batches = micro_batches;
      options.numerics.linear_forward = layers::LinearForward::e4m3;
      options = engine::with_recompute(options, {});
      CAPTURE(layout::name(kind), micro_batches);
      const auto chosen = engine::choose_recompute(options, 4, total);
      REQUIRE(chosen.ok());
      CHECK(chosen->freed_bytes ==
            total(options) - total(engine::with_recompute(options, chosen->recompute)));
    }
  }
}

TEST_CASE("mebibytes beyond a limit are rounded up") {
  CHECK(engine::mebibytes_over(100, 100) == 0);
  CHECK(engine::mebibytes_over(101, 100) == 1);
  CHECK(engine::mebibytes_over(100 + mebibyte, 100) == 1);
  CHECK(engine::mebibytes_over(101 + mebibyte, 100) == 2);
}

TEST_CASE("what costs little and frees much is computed again first") {
  EngineOptions options;
  options.model = llama3_8b();
  options.sharding.mesh = layout::Mesh::of(1, 8, 8);
  options.sharding.sequence_parallel = model::SequenceParallel::on;
  options.sharding.zero_level = 1;
  options.schedule.sequence_length = 8192;
  options.numerics.dtype = device::DType::bf16;
  options.numerics.gpu_attention.emplace();
  const auto plain = seconds(options, {});
  const auto longer = [&](const Recompute& set) { return seconds(options, set) / plain - 1; };
  CHECK(longer({Activation::norms, Activation::activation}) < 0.02);
  CHECK(longer({Activation::norms, Activation::activation}) > 0);
  CHECK(longer({Activation::attention}) > longer({Activation::norms, Activation::activation}));
  CHECK(longer({Activation::layer}) > 0.15);
  CHECK(longer({Activation::layer}) < 0.4);
}
