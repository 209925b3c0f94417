// Micro-batches that are recorded once and issued as one, on a device that keeps the work it is
// told while it records and does it again on the same memory: the bits are those of a device that
// is told each kernel.
#include "trireme/device/passing_device.hpp"

#include "engine/recorded_sections.hpp"
#include "mpi/training/training.hpp"
#include "support/detached/device.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <utility>

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
    // This device tells nothing of what it takes.
    CHECK(recorded.recorded.bytes == 0);
    // All but the first steps' parts, and the backwards whose gradients are reduced meanwhile.
    const auto parts =
        2 * static_cast<std::size_t>(steps) * static_cast<std::size_t>(options.micro_batches);
    CHECK(recorded.recorded.made >= 2);
    CHECK(recorded.recorded.issued >= parts / 2);
    CHECK(recorded.recorded.issued + recorded.recorded.made <= parts);
  }
}

namespace {

/// A card on which each recording takes as much, and the first issue of one as much again; and
/// where another program gives memory back from time to time.
class Growing final : public device::PassingDevice {
 public:
  static constexpr std::size_t for_each = 3 << 20;
  static constexpr std::size_t for_first_issue = 1 << 20;
  static constexpr std::size_t of_context = 500 << 20;

  using PassingDevice::PassingDevice;
  std::size_t taken_bytes() override { return taken_; }
  std::unique_ptr<device::Recording> end_recording() override {
    taken_ += for_each;
    return std::make_unique<Issued>(*this, inner().end_recording());
  }
  void shrink(std::size_t bytes) { taken_ -= bytes; }

 private:
  class Issued final : public device::Recording {
   public:
    Issued(Growing& device, std::unique_ptr<device::Recording> inner)
        : device_(device), inner_(std::move(inner)) {}
    void issue() override {
      if (!std::exchange(issued_, true)) device_.taken_ += for_first_issue;
      inner_->issue();
    }

   private:
    Growing& device_;
    std::unique_ptr<device::Recording> inner_;
    bool issued_ = false;
  };

  std::size_t taken_ = of_context;
};

}  // namespace

TEST_CASE("what recordings take of a device is counted, and nothing else that changes there") {
  if (mpi().world_size() > 1) return;
  DetachedKernels kernels(device::make_cpu_kernels(1));
  Growing device(kernels.device());
  auto arena = kernels.device().arena(device::Purpose::workspace, 256);
  const auto x = arena.allocate(device::DType::f32, {16});
  engine::RecordedSections sections(device);
  const auto run = [&](int section) {
    sections.run({section, {x.raw()}, 1.0F}, [&] { kernels.fill(x, 1.0F); });
  };
  run(0);
  CHECK(sections.bytes() == 0);
  run(0);
  CHECK(sections.bytes() == Growing::for_each + Growing::for_first_issue);
  device.shrink(100 << 20);
  run(0);
  run(1);
  CHECK(sections.bytes() == Growing::for_each + Growing::for_first_issue);
  run(1);
  CHECK(sections.bytes() == 2 * (Growing::for_each + Growing::for_first_issue));
  CHECK(sections.recorded() == 2);
  kernels.synchronize();
}

TEST_CASE("with tensor-parallel ranks nothing is recorded, and nothing changes") {
  if (mpi().world_size() != 2) return;
  const auto options = options_for(Architecture::llama, layout::Mesh::of(1, 1, 2));
  const auto recorded = run_on_device(options, RecordSteps::yes);
  CHECK(recorded.recorded.made == 0);
  CHECK(recorded.observed == run_on_device(options, RecordSteps::no).observed);
}
