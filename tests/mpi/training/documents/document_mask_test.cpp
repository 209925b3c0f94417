// SPDX-License-Identifier: Apache-2.0
// Documents that lie in one sequence and do not see each other: every layout computes what one rank
// does, which is what each document gives by itself.
#include "trireme/engine/measure.hpp"

#include "mpi/training/layout_comparison.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using engine::DocumentMask;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

/// Twelve sequences of 48 tokens: a chunk of context-parallel ranks has several.
engine::EngineOptions packed_options(Architecture architecture, const layout::Mesh& mesh,
                                     const Variant& variant = {}) {
  auto options = options_for(architecture, mesh, variant);
  options.schedule.sequence_length = 48;
  options.schedule.micro_batches = 6 / mesh.degree(Axis::data);
  options.schedule.document_mask = DocumentMask::yes;
  return options;
}

/// All axes; with several at once on four ranks.
std::vector<layout::Mesh> packed_meshes() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(1, 1, 2), layout::Mesh::of(2, 1, 1), layout::Mesh::of(1, 2, 1),
              layout::Mesh::of(1, 1, 1, 2)};
    case 4:
      return {layout::Mesh::of(2, 1, 2), layout::Mesh::of(2, 1, 1, 2),
              layout::Mesh::of(1, 1, 2, 2)};
    default:
      return {};
  }
}

std::vector<Variant> variants_of(const layout::Mesh& mesh) {
  std::vector<Variant> variants{
      {.name = "recompute attention", .recompute = Recompute{Activation::attention}},
      {.name = "recompute layer", .recompute = Recompute{Activation::layer}}};
  if (mesh.degree(Axis::pipeline) > 1) {
    variants.push_back({.name = "interleaved", .schedule = ScheduleKind::interleaved});
    variants.push_back({.name = "zb-h1", .schedule = ScheduleKind::zero_bubble_h1});
    variants.push_back({.name = "zb-v", .schedule = ScheduleKind::zero_bubble_v});
    variants.push_back({.name = "no layers first", .stage_layers = {0, 6}});
  }
  if (mesh.degree(layout::replica_axes) > 1) {
    variants.push_back({.name = "zero 1", .zero_level = 1});
    variants.push_back({.name = "zero 3", .zero_level = 3});
  }
  return variants;
}

/// A tied table's gradients of embedding and head add up apart, or in turn.
bool adds_in_turn(const engine::EngineOptions& options) {
  const bool in_units =
      options.sharding.zero_level == 3 && options.sharding.mesh.degree(Axis::pipeline) == 1;
  const bool on_one_stage = options.schedule.kind == ScheduleKind::zero_bubble_v;
  return !options.model.tie_word_embeddings || !(in_units || on_one_stage);
}

TrainedRun run_packed(const engine::EngineOptions& options, device::Kernels& kernels,
                      const char* name) {
  const auto& mesh = options.sharding.mesh;
  still_going(mesh.text() + " " + name);
  const auto groups = staged(mpi_groups(mesh), kernels.device());
  return run_training(options, groups.views(), kernels, short_run);
}

void check_packed_layouts(Architecture architecture) {
  CAPTURE(model::name(architecture));
  const auto kernels = kernels_under_test();
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial = run_serially(packed_options(architecture, one), *kernels, short_run);
  for (const auto& mesh : packed_meshes()) {
    CAPTURE(model::name(architecture), mesh.text());
    const auto plain = run_packed(packed_options(architecture, mesh), *kernels, "plain");
    CHECK(distance(plain.observed, serial.observed) <= tolerance(optim::RuleKind::adamw));
    CHECK(parameter_distance(plain, serial) <= parameter_tolerance(optim::RuleKind::adamw));
    if (mesh.degree(Axis::tensor) == 1) {
      CHECK(plain.observed.front().loss == serial.observed.front().loss);
    }
    for (const auto& variant : variants_of(mesh)) {
      CAPTURE(variant.name);
      const auto options = packed_options(architecture, mesh, variant);
      const auto run = run_packed(options, *kernels, variant.name);
      if (adds_in_turn(options)) {
        CHECK(run.observed == plain.observed);
      } else {
        CHECK(distance(run.observed, plain.observed) <= 1e-5);
      }
    }
    if (mesh.degree(Axis::tensor) == 1) continue;
    auto options = packed_options(architecture, mesh,
                                  {.name = "sequence parallel", .sequence = SequenceParallel::on});
    const auto divided = run_packed(options, *kernels, "sequence parallel");
    CHECK(distance(divided.observed, serial.observed) <= tolerance(optim::RuleKind::adamw));
    options.schedule.tensor_overlap = layers::TensorOverlap::halves;
    CHECK(run_packed(options, *kernels, "halves").observed == divided.observed);
  }
}

/// Tokens of one row after the other, and documents of four.
void fill_with_fours(engine::Engine& engine) {
  const auto& schedule = engine.options().schedule;
  std::int64_t next = 0;
  for (int index = 0; index < schedule.micro_batches; ++index) {
    auto& batch = engine.batch(index);
    const auto rows = schedule.micro_batch * schedule.sequence_length;
    for (std::int64_t row = 0; row < rows; ++row, ++next) {
      batch.tokens.i32()[row] = static_cast<std::int32_t>(next * next * 7 % 97);
      batch.targets.i32()[row] = static_cast<std::int32_t>((next * next * 7 + 5 * next) % 97);
      const auto position = row % schedule.sequence_length;
      if (batch.first_keys) {
        batch.first_keys.i32()[row] = static_cast<std::int32_t>(position / 4 * 4);
      }
    }
  }
}

std::vector<Observed> train_on_fours(engine::EngineOptions options, device::Kernels& kernels) {
  const auto groups = staged(local_groups(), kernels.device());
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  std::vector<Observed> observed;
  for (int step = 0; step < short_run; ++step) {
    fill_with_fours(engine);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 3e-3, reduced.gradient_norm});
    observed.push_back({reduced.loss, reduced.gradient_norm});
  }
  return observed;
}

}  // namespace

TEST_CASE("every layout keeps documents apart as one rank does, in each architecture") {
  check_packed_layouts(GENERATE(Architecture::gpt2, Architecture::llama, Architecture::qwen3));
}

TEST_CASE("packed documents train as each does by itself, where positions are angles") {
  const auto kernels = kernels_under_test();
  for (const auto architecture : {Architecture::llama, Architecture::qwen3}) {
    CAPTURE(model::name(architecture));
    auto options = packed_options(architecture, layout::Mesh::of(1, 1, 1));
    options.schedule.micro_batch = 2;
    options.schedule.micro_batches = 1;
    options.schedule.sequence_length = 12;
    const auto packed = train_on_fours(options, *kernels);
    options.schedule.document_mask = DocumentMask::no;
    const auto joined = train_on_fours(options, *kernels);
    options.schedule.micro_batches = 3;
    options.schedule.sequence_length = 4;
    const auto alone = train_on_fours(options, *kernels);
    CHECK(distance(packed, alone) <= 1e-5);
    for (std::size_t step = 0; step < packed.size(); ++step) {
      CHECK(packed[step].norm == Approx(alone[step].norm).epsilon(1e-4));
    }
    CHECK(distance(joined, alone) > 1e-4);
  }
}

TEST_CASE("an evaluation keeps documents apart, and dropout goes on") {
  const auto kernels = kernels_under_test();
  for (const auto& mesh : packed_meshes()) {
    CAPTURE(mesh.text());
    const auto options = packed_options(Architecture::llama, mesh);
    const auto groups = staged(mpi_groups(mesh), kernels->device());
    auto memory = engine::Memory::on(kernels->device(), engine::measure(options));
    engine::Engine engine(options, groups.views(), *kernels, memory);
    engine.initialise();
    fill(engine, 0);
    const auto outcome = engine.evaluate();
    const auto trained = run_packed(options, *kernels, "trained");
    CHECK(outcome.loss_sum / static_cast<double>(outcome.tokens) == trained.observed.front().loss);
  }
  const Variant dropping{.name = "dropout", .dropout = 0.2F};
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial =
      run_serially(packed_options(Architecture::gpt2, one, dropping), *kernels, short_run);
  for (const auto& mesh : packed_meshes()) {
    const auto run =
        run_packed(packed_options(Architecture::gpt2, mesh, dropping), *kernels, "dropout");
    CHECK(distance(run.observed, serial.observed) <= tolerance(optim::RuleKind::adamw));
  }
}

TEST_CASE("masks of documents are data of a recording, not a reason for another") {
  const auto kernels = kernels_under_test();
  for (const auto& mesh : packed_meshes()) {
    CAPTURE(mesh.text());
    auto options = packed_options(Architecture::llama, mesh);
    const auto plain = run_packed(options, *kernels, "issued");
    options.memory.cuda_graphs = engine::CudaGraphs::yes;
    const auto recorded = run_packed(options, *kernels, "recorded");
    CHECK(recorded.observed == plain.observed);
    options.schedule.document_mask = DocumentMask::no;
    const auto unmasked = run_packed(options, *kernels, "recorded without masks");
    CHECK(recorded.graphs.captured == unmasked.graphs.captured);
    CHECK(recorded.observed != unmasked.observed);
  }
}
