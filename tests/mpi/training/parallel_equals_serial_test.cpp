// SPDX-License-Identifier: Apache-2.0
// Every layout is a rearrangement of one computation. One table; what each row must be stands in
// its last column.
#include "mpi/training/layout_comparison.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <string>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

bool can_interleave(const layout::Mesh& mesh) {
  const int pipeline = mesh.degree(Axis::pipeline);
  const int micro_batches = 12 / mesh.degree(Axis::data);
  return pipeline > 1 && pipeline <= 3 && micro_batches % pipeline == 0;
}

/// The first and the last position may hold no layer.
void compare_empty_positions(Comparison& comparison, int layers,
                             const std::vector<Observed>& plain) {
  comparison.must_be_same({.name = "all layers first", .stage_layers = {layers, 0}}, plain);
  comparison.must_be_same({.name = "all layers last", .stage_layers = {0, layers}}, plain);
  comparison.must_be_same({.name = "empty first and last",
                           .schedule = ScheduleKind::interleaved,
                           .stage_layers = {0, 1, layers - 1, 0}},
                          plain);
}

void compare_zero_bubble(Comparison& comparison, const layout::Mesh& mesh, bool is_tied,
                         const std::vector<Observed>& plain) {
  comparison.must_be_same({.name = "zb-h1", .schedule = ScheduleKind::zero_bubble_h1}, plain);
  const Variant v{.name = "zb-v", .schedule = ScheduleKind::zero_bubble_v};
  if (mesh.degree(Axis::pipeline) > 3) return;
  if (!is_tied) return comparison.must_be_same(v, plain);
  // One stage has the table once: embedding and head add to it in turn.
  comparison.must_be_close(v, comparison.run(v, static_cast<int>(plain.size())), plain);
}

/// Everything that must not change a bit, one at a time.
void compare_variants_apart(Comparison& comparison, const layout::Mesh& mesh, int layers,
                            bool is_tied, const std::vector<Observed>& plain) {
  comparison.must_be_same({.name = "again"}, plain);
  comparison.must_be_same({.name = "recompute layer", .recompute = Recompute{Activation::layer}},
                          plain);
  if (mesh.degree(Axis::pipeline) > 1) {
    comparison.must_be_same({.name = "gpipe", .schedule = ScheduleKind::gpipe}, plain);
  }
  if (can_interleave(mesh)) {
    comparison.must_be_same({.name = "interleaved", .schedule = ScheduleKind::interleaved}, plain);
  }
  if (mesh.degree(Axis::pipeline) > 1) {
    compare_zero_bubble(comparison, mesh, is_tied, plain);
  } else if (!is_tied) {
    comparison.must_be_same({.name = "own chunk", .schedule = ScheduleKind::interleaved}, plain);
  }
  if (mesh.degree(Axis::pipeline) == 2 && can_interleave(mesh)) {
    compare_empty_positions(comparison, layers, plain);
  }
  if (mesh.degree(Axis::data) > 1) {
    comparison.must_be_same({.name = "zero 1", .zero_level = 1}, plain);
    const Variant divided{.name = "zero 3", .zero_level = 3};
    // One stage adds the embedding's and the head's gradients of all micro-batches apart.
    if (is_tied && mesh.degree(Axis::pipeline) == 1) {
      comparison.must_be_close(divided, comparison.run(divided, static_cast<int>(plain.size())),
                               plain);
    } else {
      comparison.must_be_same(divided, plain);
    }
  }
}

/// The same all at once, where ranks outnumber cores.
void compare_variants_together(Comparison& comparison, const layout::Mesh& mesh,
                               const std::vector<Observed>& plain) {
  const Variant variant{.name = "gpipe zero1 recompute",
                        .schedule = ScheduleKind::gpipe,
                        .zero_level = 1,
                        .recompute = Recompute{Activation::layer}};
  comparison.must_be_same(variant, plain);
  if (!can_interleave(mesh)) return;
  comparison.must_be_same({.name = "interleaved", .schedule = ScheduleKind::interleaved}, plain);
  comparison.must_be_same({.name = "zb-h1", .schedule = ScheduleKind::zero_bubble_h1}, plain);
}

/// Three and twelve ranks have rows of their own.
bool has_whole_table() {
  return mpi().world_size() != 3 && mpi().world_size() != 12;
}

void compare_all(Architecture architecture) {
  CAPTURE(model::name(architecture));
  if (!has_whole_table()) return;
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto one = layout::Mesh::of(1, 1, 1);
  // Where many ranks share few cores, one family is trained for long.
  const bool is_long = mpi().world_size() <= 4 || architecture == Architecture::llama;
  const int steps = is_long ? long_run : short_run;
  still_going("serial");
  const auto whole = run_serially(options_for(architecture, one, {}), *kernels, steps);
  const auto& serial = whole.observed;
  REQUIRE(serial.back().loss < serial.front().loss - (is_long ? 0.2 : 0.02));
  for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
    const int pipeline = mesh.degree(Axis::pipeline);
    const bool tied = tiny(architecture).tie_word_embeddings;
    CAPTURE(model::name(architecture), mesh.text());
    Comparison comparison(architecture, mesh, *kernels);
    const auto run = comparison.run_whole({}, steps);
    const auto& plain = run.observed;
    if (pipeline == mesh.world_size() && !tied) {
      comparison.print("1f1b", distance(plain, serial), "bitwise serial");
      CHECK(plain == serial);
      CHECK(parameter_distance(run, whole) == 0.0);
    } else {
      comparison.must_end_close({}, run, whole);
    }
    if (mpi().world_size() <= 4) {
      compare_variants_apart(comparison, mesh, tiny(architecture).num_hidden_layers, tied, plain);
    } else {
      compare_variants_together(comparison, mesh, plain);
    }
    if (mesh.degree(Axis::tensor) > 1) {
      const Variant variant{.name = "sequence parallel", .sequence = SequenceParallel::on};
      comparison.must_end_close(variant, comparison.run_whole(variant, steps), whole);
    }
    const Variant few{.name = "logits of 7 rows", .loss_rows = 7};
    const std::vector<Observed> begin(serial.begin(), serial.begin() + short_run);
    comparison.must_be_close(few, comparison.run(few, short_run), begin);
  }
}

}  // namespace

TEST_CASE("every layout trains each architecture as one rank does") {
  compare_all(GENERATE(Architecture::gpt2, Architecture::llama, Architecture::qwen3));
}

TEST_CASE("dropout draws the same numbers in every layout") {
  if (!has_whole_table()) return;
  const Variant dropping{.name = "dropout", .dropout = 0.2F};
  const Variant all{.name = "dropout, all at once",
                    .sequence = SequenceParallel::on,
                    .zero_level = 1,
                    .recompute = Recompute{Activation::layer},
                    .dropout = 0.2F};
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial =
      train_serially(options_for(Architecture::gpt2, one, dropping), *kernels, short_run);
  const auto without = train_serially(options_for(Architecture::gpt2, one, {}), *kernels, 1);
  CHECK(serial.front().loss != without.front().loss);
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::gpt2)) {
    CAPTURE(mesh.text());
    Comparison comparison(Architecture::gpt2, mesh, *kernels);
    for (const auto& variant : {dropping, all}) {
      if (mesh.degree(Axis::tensor) == 1 && variant.sequence == SequenceParallel::on) continue;
      comparison.must_be_close(variant, comparison.run(variant, short_run), serial);
    }
  }
}

TEST_CASE("every layout trains with momentum sgd as one rank does") {
  if (!has_whole_table()) return;
  const Variant plain{.name = "sgd", .rule = optim::RuleKind::sgd};
  const Variant sharded{.name = "sgd, zero 1", .zero_level = 1, .rule = optim::RuleKind::sgd};
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial =
      train_serially(options_for(Architecture::llama, one, plain), *kernels, short_run);
  const auto other = train_serially(options_for(Architecture::llama, one, {}), *kernels, 2);
  CHECK(serial[1].loss != other[1].loss);
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::llama)) {
    CAPTURE(mesh.text());
    Comparison comparison(Architecture::llama, mesh, *kernels);
    const auto observed = comparison.run(plain, short_run);
    comparison.must_be_close(plain, observed, serial);
    if (mesh.degree(Axis::data) > 1) comparison.must_be_same(sharded, observed);
  }
}

TEST_CASE("every layout trains with rules for matrices as one rank does") {
  if (!has_whole_table()) return;
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto one = layout::Mesh::of(1, 1, 1);
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    for (const auto rule :
         {optim::RuleKind::muon, optim::RuleKind::shampoo, optim::RuleKind::soap}) {
      const auto name = std::string(optim::name(rule));
      const auto name_sharded = name + ", zero 1";
      const Variant plain{.name = name.c_str(), .rule = rule};
      const Variant sharded{.name = name_sharded.c_str(), .zero_level = 1, .rule = rule};
      const auto serial = run_serially(options_for(architecture, one, plain), *kernels, short_run);
      const auto other = train_serially(options_for(architecture, one, {}), *kernels, 3);
      CHECK(serial.observed[2].loss != other[2].loss);
      for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
        CAPTURE(mesh.text(), name);
        Comparison comparison(architecture, mesh, *kernels);
        const auto run = comparison.run_whole(plain, short_run);
        comparison.must_end_close(plain, run, serial);
        if (mesh.degree(Axis::data) > 1) comparison.must_be_same(sharded, run.observed);
      }
    }
  }
}

namespace {

/// Meshes beside the table: as wide and as deep as one axis gets, threes that split key heads, and
/// three axes of which no two are alike.
std::vector<layout::Mesh> meshes_beside() {
  switch (mpi().world_size()) {
    case 3:
      return {layout::Mesh::of(1, 1, 3)};
    case 8:
      return {layout::Mesh::of(1, 1, 8), layout::Mesh::of(8, 1, 1)};
    case 12:
      return {layout::Mesh::of(2, 3, 2)};
    default:
      return {};
  }
}

engine::EngineOptions options_beside(Architecture architecture, const layout::Mesh& mesh) {
  auto options = options_for(architecture, mesh, {});
  const bool threes = mpi().world_size() % 3 == 0;
  options.model.num_hidden_layers = threes ? 4 : 8;
  options.model.num_attention_heads = threes ? 6 : 8;
  options.model.num_key_value_heads = architecture == Architecture::gpt2
                                          ? options.model.num_attention_heads
                                      : threes ? 6
                                               : 4;
  options.model.head_dim = options.model.hidden_size / options.model.num_attention_heads;
  return options;
}

}  // namespace

TEST_CASE("layouts beside the table train as one rank does") {
  if (meshes_beside().empty()) return;
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto one = layout::Mesh::of(1, 1, 1);
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    still_going("serial");
    const auto serial = run_serially(options_beside(architecture, one), *kernels, long_run);
    REQUIRE(serial.observed.back().loss < serial.observed.front().loss - 0.2);
    for (const auto& mesh : meshes_beside()) {
      CAPTURE(model::name(architecture), mesh.text());
      const Comparison comparison(architecture, mesh, *kernels);
      auto options = options_beside(architecture, mesh);
      const auto groups = staged(mpi_groups(mesh), kernels->device());
      const auto run = [&] {
        still_going(mesh.text());
        return run_training(options, groups.views(), *kernels, long_run);
      };
      comparison.must_end_close({}, run(), serial);
      if (mesh.degree(Axis::tensor) == 1 && mesh.degree(Axis::data) == 1) continue;
      options.sharding.sequence_parallel =
          mesh.degree(Axis::tensor) > 1 ? SequenceParallel::on : SequenceParallel::off;
      options.sharding.zero_level = 1;
      options.schedule.kind = ScheduleKind::gpipe;
      options.memory.recompute = Recompute{Activation::layer};
      comparison.must_end_close({.name = "all at once"}, run(), serial);
    }
  }
}

TEST_CASE("what is not finite is infinitely far away") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Observed> good{{2.0, 1.0}, {1.0, 1.0}};
  CHECK(distance(good, good) == 0.0);
  CHECK(distance({{2.0, 1.0}, {1.5, 1.0}}, good) == 0.5);
  for (const double bad : {nan, infinity}) {
    CHECK(distance({{2.0, 1.0}, {bad, 1.0}}, good) == infinity);
    CHECK(distance(good, {{bad, 1.0}, {1.0, 1.0}}) == infinity);
  }
  CHECK(distance({{2.0, 1.0}}, good) == infinity);
}
