// SPDX-License-Identifier: Apache-2.0
// Evaluation is forward alone: it drops nothing, ends in every schedule, gives the loss of one rank
// and leaves no trace in training.
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;

namespace {

/// Twelve micro-batches of two sequences of 24 tokens.
engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 12;
  options.schedule.sequence_length = 24;
  options.numerics.seed = 7;
  return options;
}

/// An engine with what it stands on, initialised from the seed.
struct Subject {
  Subject(const engine::EngineOptions& options, const comm::OwnedAxisGroups& groups)
      : memory(engine::Memory::host(engine::measure(options))),
        engine(options, groups.views(), *kernels, memory) {
    if (options.use == engine::Use::training) engine.initialise();
    fill(engine, 0);
  }
  double evaluated() {
    const auto outcome = engine.evaluate();
    CHECK(outcome.tokens == 12 * 2 * 24);
    return outcome.loss_sum / static_cast<double>(outcome.tokens);
  }
  Observed step(int index) {
    fill(engine, index);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({index + 1, 3e-3, reduced.gradient_norm});
    return {reduced.loss, reduced.gradient_norm};
  }

  std::unique_ptr<device::Kernels> kernels = device::make_reference_kernels();
  engine::Memory memory;
  engine::Engine engine;
};

/// The loss of one rank after a step of training.
double serial_loss(Architecture architecture) {
  const auto groups = local_groups();
  Subject serial(options_for(architecture, layout::Mesh::of(1, 1, 1)), groups);
  serial.step(0);
  fill(serial.engine, 1);
  return serial.evaluated();
}

void copy_parameters(engine::Engine& from, engine::Engine& to, device::Kernels& kernels) {
  const auto source = from.parameter_parts();
  const auto target = to.parameter_parts();
  REQUIRE(source.size() == target.size());
  for (std::size_t index = 0; index < source.size(); ++index) {
    REQUIRE(source[index].name == target[index].name);
    kernels.issue(device::Copy{source[index].values, target[index].values});
  }
}

/// Stages and virtual stages of two, and the rest of the ranks tensor-parallel.
engine::EngineOptions two_chunks(Architecture architecture, ScheduleKind kind) {
  const auto mesh = layout::Mesh::of(2, 1, mpi().world_size() / 2);
  auto options = options_for(architecture, mesh);
  options.schedule.kind = kind;
  options.schedule.virtual_stages = 2;
  return options;
}

}  // namespace

TEST_CASE("evaluation runs without dropout") {
  const auto groups = local_groups();
  auto options = options_for(Architecture::gpt2, layout::Mesh::of(1, 1, 1));
  Subject plain(options, groups);
  options.model.dropout = 0.3F;
  Subject dropping(options, groups);
  const double expected = plain.evaluated();
  CHECK(dropping.evaluated() == expected);
  CHECK(dropping.evaluated() == expected);
  // Training from the same parameters does drop, or the equality above would say nothing.
  CHECK(dropping.step(0).loss != expected);
  CHECK(plain.step(0).loss == Approx(expected).epsilon(1e-6));
}

TEST_CASE("evaluation of a schedule with two chunks a stage ends with the loss of one rank") {
  if (mpi().world_size() < 2) return;
  const auto kind = GENERATE(ScheduleKind::interleaved, ScheduleKind::zero_bubble_v);
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    CAPTURE(model::name(architecture));
    const double expected = serial_loss(architecture);
    const auto options = two_chunks(architecture, kind);
    const auto groups = mpi_groups(options.sharding.mesh);
    Subject training(options, groups);
    training.step(0);
    fill(training.engine, 1);
    const double found = training.evaluated();
    // Stages alone change no bit where no weight is tied across them.
    const bool same_sums = mpi().world_size() == 2 && !options.model.tie_word_embeddings;
    CAPTURE(layout::name(kind));
    if (same_sums) CHECK(found == expected);
    CHECK(found == Approx(expected).epsilon(1e-6));

    // An engine that never trains holds one activation a chunk: other buffers, the same loss.
    auto forward_alone = options;
    forward_alone.use = engine::Use::evaluation;
    Subject evaluating(forward_alone, groups);
    copy_parameters(training.engine, evaluating.engine, *training.kernels);
    fill(evaluating.engine, 1);
    CHECK(evaluating.evaluated() == found);
  }
}

TEST_CASE("an evaluation between two steps changes no bit of training") {
  if (mpi().world_size() < 2) return;
  const auto kind = GENERATE(ScheduleKind::interleaved, ScheduleKind::zero_bubble_v);
  const auto options = two_chunks(Architecture::llama, kind);
  const auto groups = mpi_groups(options.sharding.mesh);
  Subject undisturbed(options, groups);
  Subject disturbed(options, groups);
  for (int index = 0; index < 3; ++index) {
    const auto expected = undisturbed.step(index);
    CHECK(disturbed.step(index) == expected);
    fill(disturbed.engine, 9);
    CHECK(disturbed.evaluated() > 0);
  }
}
