// SPDX-License-Identifier: Apache-2.0
// Context-parallel ranks divide the tokens of every sequence, and compute what one rank does.
#include "trireme/engine/measure.hpp"

#include "mpi/training/layout_comparison.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

/// The first is compared in all variants, those with data-parallel ranks at all ZeRO levels.
std::vector<layout::Mesh> meshes_with_context() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(1, 1, 1, 2)};
    case 4:
      return {layout::Mesh::of(2, 1, 1, 2), layout::Mesh::of(1, 2, 1, 2),
              layout::Mesh::of(1, 1, 2, 2), layout::Mesh::of(1, 1, 1, 4)};
    case 6:
      return {layout::Mesh::of(1, 1, 2, 3), layout::Mesh::of(2, 1, 1, 3)};
    case 8:
      return {layout::Mesh::of(2, 1, 2, 2), layout::Mesh::of(1, 4, 1, 2)};
    default:
      return {};
  }
}

/// 12 sequences of 48 tokens, so that a chunk has several on each of 2, 3 or 4 ranks.
engine::EngineOptions options_of(Architecture architecture, const layout::Mesh& mesh,
                                 const Variant& variant) {
  auto options = options_for(architecture, mesh, variant);
  const int data = mesh.degree(Axis::data);
  options.schedule.sequence_length = 48;
  options.schedule.micro_batch = data == 4 ? 1 : 2;
  options.schedule.micro_batches = 12 / static_cast<int>(options.schedule.micro_batch) / data;
  return options;
}

class Trained {
 public:
  Trained(Architecture architecture, const layout::Mesh& mesh, device::Kernels& kernels)
      : architecture_(architecture),
        mesh_(mesh),
        kernels_(kernels),
        groups_(staged(mpi_groups(mesh), kernels.device())) {}

  TrainedRun run(const Variant& variant) const { return run(options(variant), variant.name); }
  TrainedRun run(const engine::EngineOptions& options, const char* name) const {
    still_going(mesh_.text() + " " + name);
    return run_training(options, groups_.views(), kernels_, short_run);
  }
  engine::EngineOptions options(const Variant& variant) const {
    return options_of(architecture_, mesh_, variant);
  }
  void must_be_same(const Variant& variant, const TrainedRun& plain) const {
    CAPTURE(variant.name);
    CHECK(run(variant).observed == plain.observed);
  }
  /// Loss of a forward alone over the first step's samples.
  double evaluated() const {
    const auto options = this->options({});
    auto memory = engine::Memory::on(kernels_.device(), engine::measure(options));
    engine::Engine engine(options, groups_.views(), kernels_, memory);
    engine.initialise();
    fill(engine, 0);
    const auto outcome = engine.evaluate();
    return outcome.loss_sum / static_cast<double>(outcome.tokens);
  }

 private:
  Architecture architecture_;
  layout::Mesh mesh_;
  device::Kernels& kernels_;
  comm::OwnedAxisGroups groups_;
};

void check_close(const TrainedRun& run, const TrainedRun& serial) {
  CHECK(distance(run.observed, serial.observed) <= tolerance(optim::RuleKind::adamw));
  CHECK(parameter_distance(run, serial) <= parameter_tolerance(optim::RuleKind::adamw));
}

void compare_zero_levels(const Trained& trained, const layout::Mesh& mesh, bool is_tied,
                         const TrainedRun& plain, const TrainedRun& serial) {
  trained.must_be_same({.name = "zero 1", .zero_level = 1}, plain);
  // Sums over ranks in each micro-batch come in another order.
  CHECK(distance(trained.run({.name = "zero 2", .zero_level = 2}).observed, plain.observed) <=
        1e-6);
  const Variant divided{.name = "zero 3", .zero_level = 3};
  // One stage adds the embedding's and the head's gradients of all micro-batches apart.
  const bool adds_apart = is_tied && mesh.degree(Axis::pipeline) == 1;
  if (adds_apart) return check_close(trained.run(divided), serial);
  trained.must_be_same(divided, plain);
}

void compare_variants(const Trained& trained, const layout::Mesh& mesh, const TrainedRun& plain) {
  trained.must_be_same({.name = "again"}, plain);
  trained.must_be_same(
      {.name = "recompute attention", .recompute = Recompute{Activation::attention}}, plain);
  trained.must_be_same({.name = "recompute layer", .recompute = Recompute{Activation::layer}},
                       plain);
  if (mesh.degree(Axis::pipeline) == 1) return;
  trained.must_be_same({.name = "interleaved", .schedule = ScheduleKind::interleaved}, plain);
  trained.must_be_same({.name = "zb-h1", .schedule = ScheduleKind::zero_bubble_h1}, plain);
}

void compare_with_one_rank(Architecture architecture) {
  CAPTURE(model::name(architecture));
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto meshes = meshes_with_context();
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial = run_serially(options_of(architecture, one, {}), *kernels, short_run);
  const bool is_tied = tiny(architecture).tie_word_embeddings;
  for (const auto& mesh : meshes) {
    CAPTURE(model::name(architecture), mesh.text());
    const Trained trained(architecture, mesh, *kernels);
    const auto plain = trained.run({});
    check_close(plain, serial);
    CHECK(trained.evaluated() == plain.observed.front().loss);
    const int tensor = mesh.degree(Axis::tensor);
    if (tensor == 1) {
      CHECK(plain.observed.front().loss == serial.observed.front().loss);
    } else {
      // Replicas of whole sequences have the same sums over tensor-parallel ranks.
      const auto whole =
          layout::Mesh::of(mesh.degree(Axis::pipeline), mesh.degree(layout::replica_axes), tensor);
      const auto replicas = Trained(architecture, whole, *kernels).run({});
      CHECK(plain.observed.front().loss == replicas.observed.front().loss);
      check_close(trained.run({.name = "sequence parallel", .sequence = SequenceParallel::on}),
                  serial);
    }
    if (mesh == meshes.front()) compare_variants(trained, mesh, plain);
    const bool has_data_ranks = mesh.degree(Axis::data) > 1;
    if (mesh == meshes.front() || has_data_ranks) {
      compare_zero_levels(trained, mesh, is_tied, plain, serial);
    }
  }
}

}  // namespace

TEST_CASE("ranks that divide sequences train each architecture as one rank does") {
  compare_with_one_rank(GENERATE(Architecture::gpt2, Architecture::llama, Architecture::qwen3));
}

TEST_CASE("ranks that divide sequences draw the dropout of whole ones") {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const Variant dropping{.name = "dropout", .dropout = 0.2F};
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial =
      run_serially(options_of(Architecture::gpt2, one, dropping), *kernels, short_run);
  const auto without = run_serially(options_of(Architecture::gpt2, one, {}), *kernels, 1);
  CHECK(serial.observed.front().loss != without.observed.front().loss);
  for (const auto& mesh : meshes_with_context()) {
    CAPTURE(mesh.text());
    const Trained trained(Architecture::gpt2, mesh, *kernels);
    const auto run = trained.run(dropping);
    check_close(run, serial);
    if (mesh.degree(Axis::tensor) == 1) {
      CHECK(run.observed.front().loss == serial.observed.front().loss);
      continue;
    }
    auto sequence = dropping;
    sequence.sequence = SequenceParallel::on;
    check_close(trained.run(sequence), serial);
  }
}

TEST_CASE("ranks that divide sequences own the matrices of rules for whole ones") {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto mesh = meshes_with_context().front();
  const Variant muon{.name = "muon", .rule = optim::RuleKind::muon};
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto serial = run_serially(options_of(Architecture::llama, one, muon), *kernels, short_run);
  const Trained trained(Architecture::llama, mesh, *kernels);
  const auto plain = trained.run(muon);
  check_close(plain, serial);
  trained.must_be_same({.name = "muon, zero 1", .zero_level = 1, .rule = optim::RuleKind::muon},
                       plain);
}

TEST_CASE("micro-batches of divided sequences are recorded where a device can") {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto mesh = meshes_with_context().front();
  const Trained trained(Architecture::llama, mesh, *kernels);
  const auto plain = trained.run({});
  auto options = trained.options({});
  options.memory.cuda_graphs = engine::CudaGraphs::yes;
  CHECK(trained.run(options, "graphs").observed == plain.observed);
}
