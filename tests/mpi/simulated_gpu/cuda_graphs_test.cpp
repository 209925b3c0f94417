// SPDX-License-Identifier: Apache-2.0
// Micro-batches that are captured once and launched as CUDA graphs, on a device that keeps the work
// it is told and does it again on the same memory, have the bits of those issued kernel by kernel.
#include "trireme/device/passing_device.hpp"

#include "engine/graphs/cuda_graph_cache.hpp"
#include "mpi/simulated_gpu/captured_run.hpp"
#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <utility>

using namespace trireme;
using namespace trireme::testing;
using engine::CudaGraphs;
using layout::Axis;
using model::Architecture;

namespace {

/// Data and pipeline parallel alone: tensor-parallel ranks meet inside a micro-batch.
std::vector<layout::Mesh> meshes() {
  const int ranks = mpi().world_size();
  if (ranks == 2) return {layout::Mesh::of(2, 1, 1), layout::Mesh::of(1, 2, 1)};
  return {ranks == 4 ? layout::Mesh::of(2, 2, 1) : layout::Mesh::of(1, 1, 1)};
}

}  // namespace

TEST_CASE("training from CUDA graphs has the bits of training kernel by kernel") {
  if (mpi().world_size() > 4) return;
  const auto architecture = GENERATE(Architecture::gpt2, Architecture::llama, Architecture::qwen3);
  const auto dropout = GENERATE(0.0F, 0.1F);
  const auto recompute =
      GENERATE(layers::Recompute{}, layers::Recompute{layers::Activation::attention},
               layers::Recompute{layers::Activation::layer});
  const int zero_level = GENERATE(0, 1, 2);
  for (const auto& mesh : meshes()) {
    still_going(mesh.text());
    CAPTURE(mesh.text(), model::name(architecture), dropout, zero_level);
    auto options = options_of_graphs(architecture, mesh);
    options.model.dropout = dropout;
    options.memory.recompute = recompute;
    options.sharding.zero_level = zero_level;
    const auto plain = run_on_device(options, CudaGraphs::no);
    const auto captured_run = run_on_device(options, CudaGraphs::yes);
    CHECK(captured_run.observed == plain.observed);
    CHECK(plain.graphs.captured == 0);
    CHECK(captured_run.graphs.bytes == 0);  // this device tells nothing of what it takes
    // All but the first steps' parts, and the backwards whose gradients are reduced meanwhile.
    const auto parts = 2 * static_cast<std::size_t>(steps) *
                       static_cast<std::size_t>(options.schedule.micro_batches);
    CHECK(captured_run.graphs.captured >= 2);
    CHECK(captured_run.graphs.launched >= parts / 2);
    CHECK(captured_run.graphs.launched + captured_run.graphs.captured <= parts);
  }
}

TEST_CASE("graphs serve steps that count other targets, and rings of which few places differ") {
  if (mpi().world_size() > 4) return;
  const auto few = [](engine::Engine& engine, int step) {
    auto* targets = engine.batch(step % 2).targets.i32();
    std::fill_n(targets, 1 + 2 * step, -1);
  };
  auto some = meshes();
  if (mpi().world_size() == 4) some.push_back(layout::Mesh::of(4, 1, 1));
  for (const auto& mesh : some) {
    CAPTURE(mesh.text());
    auto options = options_of_graphs(Architecture::llama, mesh);
    options.model.num_hidden_layers = 4;
    const auto plain = run_on_device(options, CudaGraphs::no, 1 << 20, few);
    const auto captured_run = run_on_device(options, CudaGraphs::yes, 1 << 20, few);
    CHECK(captured_run.observed == plain.observed);
    // Forward and backward of twice as many micro-batches as a stage holds, and one that tells.
    const int held =
        mesh.degree(Axis::pipeline) - mesh.coordinate(Axis::pipeline, mpi().world_rank());
    CHECK(captured_run.graphs.captured <= static_cast<std::size_t>(4 * held + 1));
    CHECK(captured_run.captured[2] == captured_run.captured.back());
  }
}

TEST_CASE("a step of one micro-batch runs backward from graphs, too, beside its reductions") {
  if (mpi().world_size() > 4) return;
  for (const auto& mesh : meshes()) {
    still_going(mesh.text());
    CAPTURE(mesh.text());
    auto options = options_of_graphs(Architecture::gpt2, mesh);
    options.schedule.micro_batches = 1;
    const auto plain = run_on_device(options, CudaGraphs::no);
    const auto captured_run = run_on_device(options, CudaGraphs::yes);
    CHECK(captured_run.observed == plain.observed);
    CHECK(captured_run.graphs.captured == 2);
    CHECK(captured_run.graphs.launched == 2 * (steps - 1));
  }
}

TEST_CASE("schedules that split backward train from CUDA graphs as kernel by kernel") {
  const int ranks = mpi().world_size();
  if (ranks != 2 && ranks != 4) return;
  const auto kind =
      GENERATE(layout::ScheduleKind::zero_bubble_h1, layout::ScheduleKind::zero_bubble_h2,
               layout::ScheduleKind::zero_bubble_v);
  const auto recompute =
      GENERATE(layers::Recompute{}, layers::Recompute{layers::Activation::layer});
  const auto mesh = ranks == 2 ? layout::Mesh::of(2, 1, 1) : layout::Mesh::of(2, 1, 2);
  auto options = options_of_graphs(Architecture::llama, mesh);
  options.model.num_hidden_layers = 4;
  options.model.dropout = 0.1F;
  options.memory.recompute = recompute;
  if (ranks == 4) options.sharding.sequence_parallel = model::SequenceParallel::on;
  CAPTURE(mesh.text(), layout::name(kind));
  still_going(mesh.text());
  const auto expected = run_on_device(options, CudaGraphs::no);
  options.schedule.kind = kind;
  options.schedule.virtual_stages = layout::has_virtual_stages(kind) ? 2 : 1;
  const auto plain = run_on_device(options, CudaGraphs::no);
  CHECK(plain.observed == expected.observed);
  const auto captured_run = run_on_device(options, CudaGraphs::yes);
  CHECK(captured_run.observed == plain.observed);
  CHECK(captured_run.graphs.captured >= 3);
  // More than all forwards and gradients of inputs: those of weights are launched, too.
  const auto of_a_kind = static_cast<std::size_t>(steps) *
                         static_cast<std::size_t>(options.schedule.micro_batches) *
                         static_cast<std::size_t>(options.schedule.virtual_stages);
  CHECK(captured_run.graphs.launched > 2 * of_a_kind);
}

namespace {

/// A GPU on which each graph takes as much, and the first launch of one as much again; and
/// where another program gives memory back from time to time.
class Growing final : public device::PassingDevice {
 public:
  static constexpr std::size_t for_each = 3 << 20;
  static constexpr std::size_t for_first_launch = 1 << 20;
  static constexpr std::size_t of_context = 500 << 20;

  using PassingDevice::PassingDevice;
  std::size_t taken_bytes() override { return taken_; }
  std::unique_ptr<device::CapturedGraph> end_capture() override {
    taken_ += for_each;
    return std::make_unique<Launched>(*this, inner().end_capture());
  }
  void shrink(std::size_t bytes) { taken_ -= bytes; }

 private:
  class Launched final : public device::CapturedGraph {
   public:
    Launched(Growing& device, std::unique_ptr<device::CapturedGraph> inner)
        : device_(device), inner_(std::move(inner)) {}
    void launch() override {
      if (!std::exchange(launched_, true)) device_.taken_ += for_first_launch;
      inner_->launch();
    }

   private:
    Growing& device_;
    std::unique_ptr<device::CapturedGraph> inner_;
    bool launched_ = false;
  };

  std::size_t taken_ = of_context;
};

}  // namespace

TEST_CASE("what CUDA graphs take of a device is counted, and nothing else that changes there") {
  if (mpi().world_size() > 1) return;
  SimulatedKernels kernels(device::make_cpu_kernels(1));
  Growing device(kernels.device());
  auto arena = kernels.device().arena(device::Purpose::workspace, 256);
  const auto x = arena.allocate(device::DType::f32, {16});
  engine::CudaGraphCache cache(device);
  const auto run = [&](int part) {
    cache.run({part, {x.raw()}}, [&] { kernels.issue(device::Fill{x, 1.0F}); });
  };
  run(0);
  CHECK(cache.bytes() == 0);
  run(0);
  CHECK(cache.bytes() == Growing::for_each + Growing::for_first_launch);
  device.shrink(100 << 20);
  run(0);
  run(1);
  CHECK(cache.bytes() == Growing::for_each + Growing::for_first_launch);
  run(1);
  CHECK(cache.bytes() == 2 * (Growing::for_each + Growing::for_first_launch));
  CHECK(cache.captured() == 2);
  kernels.synchronize();
}

namespace {

/// With tensor parallelism, alone and with stages and replicas.
std::vector<layout::Mesh> tensor_meshes() {
  const int ranks = mpi().world_size();
  if (ranks == 2) return {layout::Mesh::of(1, 1, 2)};
  if (ranks == 4) return {layout::Mesh::of(2, 1, 2), layout::Mesh::of(1, 2, 2)};
  return {};
}

/// Graph breaks of one micro-batch, in its forward and in its backward on a stage.
struct Meetings {
  std::size_t forward = 0;
  std::size_t backward = 0;
  /// In the last micro-batch's backward, where replicas reduce what layers complete.
  std::size_t told = 0;
};

/// Layers sum twice each way, backward with products between start and end; the embedding sums, the
/// head does twice and sums its gradient. Ranks with a part of the rows gather them before as many
/// products, and for the embedding's gradient; backward then breaks before a layer's first product
/// and around both of each part's weights, which for attention follow each other. Halves break
/// where the other half's sum is waited for, behind their products and, on the one of two ranks
/// that has their rows, where their gather begins; backward also where the next layer's gather
/// begins.
Meetings meetings_of(const engine::EngineOptions& options) {
  const auto& mesh = options.sharding.mesh;
  const int stages = mesh.degree(Axis::pipeline);
  const int stage = mesh.coordinate(Axis::pipeline, options.sharding.rank);
  const auto layers = static_cast<std::size_t>(options.model.num_hidden_layers / stages);
  const bool splits = options.sharding.sequence_parallel == model::SequenceParallel::on;
  const bool masks = !splits || options.model.dropout > 0;  // or nothing is before the first gather
  Meetings meetings{(splits ? 4 : 2) * layers, (splits ? 8 : 4) * layers - (masks ? 0 : 1)};
  if (options.schedule.tensor_overlap == layers::TensorOverlap::halves) {
    meetings.forward = (splits ? 10 : 8) * layers - 1;
    const bool is_first = mesh.coordinate(Axis::tensor, options.sharding.rank) == 0;
    if (splits && (is_first ? stage == stages - 1 : stage == 0 && masks)) meetings.forward += 1;
    if (!masks) meetings.backward += layers - 1;
  }
  if (mesh.degree(Axis::data) > 1 && masks) meetings.told = layers;
  if (stage == 0) meetings.backward += splits ? 1 : 0;
  if (stage == 0) meetings.forward += 1;
  if (stage == stages - 1) meetings.forward += splits ? 3 : 2;
  return meetings;
}

}  // namespace

TEST_CASE("with tensor-parallel ranks CUDA graphs go from collective to collective") {
  const auto architecture = GENERATE(Architecture::gpt2, Architecture::llama);
  const auto sequence = GENERATE(model::SequenceParallel::off, model::SequenceParallel::on);
  const auto recompute =
      GENERATE(layers::Recompute{}, layers::Recompute{layers::Activation::layer});
  const auto overlap = GENERATE(layers::TensorOverlap::plain, layers::TensorOverlap::halves);
  for (const auto& mesh : tensor_meshes()) {
    still_going(mesh.text());
    CAPTURE(mesh.text(), model::name(architecture));
    auto options = options_of_graphs(architecture, mesh);
    options.model.dropout = architecture == Architecture::gpt2 ? 0.1F : 0.0F;
    options.schedule.micro_batch = 2;
    options.schedule.tensor_overlap = overlap;
    options.sharding.sequence_parallel = sequence;
    options.memory.recompute = recompute;
    options.sharding.zero_level = 1;
    const auto plain = run_on_device(options, CudaGraphs::no);
    const auto captured_run = run_on_device(options, CudaGraphs::yes);
    CHECK(captured_run.observed == plain.observed);
    CHECK(captured_run.graphs.captured >= 2);
    CHECK(captured_run.graphs.launched > captured_run.graphs.captured);
    if (recompute == layers::Recompute{layers::Activation::layer}) continue;
    const auto each = meetings_of(options);
    const auto [captured, graphs, launched, bytes] = captured_run.graphs;
    bool found = false;  // forwards, backwards and, once, one that tells
    for (std::size_t forwards = 0; forwards <= captured; ++forwards) {
      found = found || graphs == forwards * (each.forward + 1) +
                                     (captured - forwards) * (each.backward + 1) + each.told;
    }
    CAPTURE(captured, graphs, each.forward, each.backward);
    CHECK(found);
  }
}

TEST_CASE("a tensor-parallel rank that cannot capture meets others that can") {
  if (mpi().world_size() != 2) return;
  auto options = options_of_graphs(Architecture::llama, layout::Mesh::of(1, 1, 2));
  const auto plain = run_on_device(options, CudaGraphs::no);
  // In the middle of its first part, when others have captured theirs.
  const bool refuses = mpi().world_rank().value() == 1;
  const auto captured_run = run_on_device(options, CudaGraphs::yes, refuses ? 3 : 1 << 20);
  CHECK(captured_run.observed == plain.observed);
  CHECK((captured_run.graphs.captured == 0) == refuses);
}
