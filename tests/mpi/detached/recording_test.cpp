// Micro-batches that are recorded once and issued as one, on a device that keeps the work it is
// told while it records and does it again on the same memory: the bits are those of a device that
// is told each kernel.
#include "mpi/training/training.hpp"
#include "support/detached/device.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::testing;
using engine::RecordSteps;
using layout::Axis;
using model::Architecture;

namespace {

constexpr int steps = 4;

struct Run {
  std::vector<Observed> observed;
  engine::Engine::Recorded recorded;
};

Run run_on_device(engine::EngineOptions options, RecordSteps record) {
  options.record = record;
  DetachedKernels kernels(device::make_cpu_kernels(1),
                          {Haste::Kind::mixed, static_cast<std::uint64_t>(options.rank.value())});
  const auto groups = staged(mpi_groups(options.mesh), kernels.device());
  const auto measured = engine::measure(options);
  auto memory = engine::Memory::on(kernels.device(), measured);
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  Run run;
  for (int step = 0; step < steps; ++step) {
    fill(engine, step);
    const auto outcome = engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update(3e-3, step + 1);
    run.observed.push_back({outcome.loss, reduced.gradient_norm});
  }
  CHECK(memory.peak_bytes() == measured);
  run.recorded = engine.recorded();
  return run;
}

/// Data and pipeline parallel alone: tensor-parallel ranks meet inside a micro-batch.
std::vector<layout::Mesh> meshes() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(2, 1, 1), layout::Mesh::of(1, 2, 1)};
    case 4:
      return {layout::Mesh::of(2, 2, 1)};
    default:
      return {layout::Mesh::of(1, 1, 1)};
  }
}

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.model.num_hidden_layers = 2;
  options.mesh = mesh;
  options.rank = mpi().world_rank();
  options.micro_batch = 1;
  options.micro_batches = 8 / mesh.degree(Axis::data);
  options.sequence_length = 16;
  options.bucket_bytes = 16 << 10;
  options.clip_norm = 0.5;
  options.seed = 7;
  return options;
}

}  // namespace

TEST_CASE("training from recordings has the bits of training kernel by kernel") {
  if (mpi().world_size() > 4) return;
  const auto architecture = GENERATE(Architecture::gpt2, Architecture::llama, Architecture::qwen3);
  const auto dropout = GENERATE(0.0F, 0.1F);
  const auto recompute =
      GENERATE(model::Recompute::none, model::Recompute::attention, model::Recompute::layer);
  const int zero_level = GENERATE(0, 1);
  for (const auto& mesh : meshes()) {
    still_going(mesh.text());
    CAPTURE(mesh.text(), model::name(architecture), dropout, zero_level);
    auto options = options_for(architecture, mesh);
    options.model.dropout = dropout;
    options.recompute = recompute;
    options.zero_level = zero_level;
    const auto plain = run_on_device(options, RecordSteps::no);
    const auto recorded = run_on_device(options, RecordSteps::yes);
    CHECK(recorded.observed == plain.observed);
    CHECK(plain.recorded.made == 0);
    // All but the first steps' parts, and the backwards whose gradients are reduced meanwhile.
    const auto parts =
        2 * static_cast<std::size_t>(steps) * static_cast<std::size_t>(options.micro_batches);
    CHECK(recorded.recorded.made >= 2);
    CHECK(recorded.recorded.issued >= parts / 2);
    CHECK(recorded.recorded.issued + recorded.recorded.made <= parts);
  }
}

TEST_CASE("with tensor-parallel ranks nothing is recorded, and nothing changes") {
  if (mpi().world_size() != 2) return;
  const auto options = options_for(Architecture::llama, layout::Mesh::of(1, 1, 2));
  const auto recorded = run_on_device(options, RecordSteps::yes);
  CHECK(recorded.recorded.made == 0);
  CHECK(recorded.observed == run_on_device(options, RecordSteps::no).observed);
}
