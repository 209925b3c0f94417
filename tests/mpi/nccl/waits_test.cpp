// SPDX-License-Identifier: Apache-2.0
// How often the host waits in a step over groups of NCCL, and that FP8 makes it wait no more.
#include "trireme/engine/measure.hpp"

#include "mpi/nccl/training_over_nccl.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;

namespace {

/// How often the host waited in one training step, for the device and for works.
struct Waits {
  std::uint64_t device = 0;
  int works = 0;
  int joins = 0;
  /// Joins of the tensor-parallel group, which no look at what is done can make fewer.
  int tensor_joins = 0;
};

/// Counts, and passes on.
class Counted final : public comm::Work::Operation {
 public:
  Counted(comm::Work work, Waits& waits) : work_(std::move(work)), waits_(waits) {}
  bool poll() override { return work_.poll(); }
  void wait() override {
    ++waits_.works;
    work_.wait();
  }
  bool done() const override { return work_.done(); }
  void wait_on_stream(std::unique_ptr<Operation> /*self*/) override {
    ++waits_.joins;
    work_.wait_on_stream();
  }

 private:
  comm::Work work_;
  Waits& waits_;
};

class CountingGroup final : public comm::ProcessGroup {
 public:
  CountingGroup(std::unique_ptr<comm::ProcessGroup> inner, Waits& waits)
      : ProcessGroup(inner->name(), inner->ranks(), inner->rank()),
        inner_(std::move(inner)),
        waits_(waits) {}
  const char* backend() const override { return inner_->backend(); }
  ProcessGroup& host_group() override { return inner_->host_group(); }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    return counted(inner_->start_all_reduce(x, op));
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    return counted(inner_->start_reduce_scatter(whole, part, cuts));
  }
  comm::Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    return counted(inner_->start_all_gather(part, whole, cuts));
  }
  comm::Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override {
    return counted(inner_->start_all_to_all(from, to));
  }
  comm::Work start_broadcast(const device::Tensor& x, int root) override {
    return counted(inner_->start_broadcast(x, root));
  }
  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    return counted(inner_->start_send(x, peer, tag));
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    return counted(inner_->start_receive(x, peer, tag));
  }
  void barrier() override { inner_->barrier(); }

 private:
  comm::Work counted(comm::Work work) const {
    return comm::Work(std::make_unique<Counted>(std::move(work), waits_));
  }

  std::unique_ptr<comm::ProcessGroup> inner_;
  Waits& waits_;
};

/// Waits of the second step.
Waits waits_of_a_step(FakeNccl& nccl, const engine::EngineOptions& options) {
  SimulatedKernels kernels(device::make_cpu_kernels(1));
  Waits waits;
  Waits of_tensor;
  auto groups = mpi_groups(options.sharding.mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclGroups parent(nccl.library(), mpi(), *world, kernels.device());
  for (auto& [axis, ends, group] : groups.all()) {
    group = parent.split(std::move(group));
    auto& counted = axis == layout::Axis::tensor ? of_tensor : waits;
    if (group) group = std::make_unique<CountingGroup>(std::move(group), counted);
  }
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  Waits before;
  for (int step = 0; step < 2; ++step) {
    before = {kernels.device().waits(), waits.works + of_tensor.works,
              waits.joins + of_tensor.joins, of_tensor.joins};
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 1e-3, reduced.gradient_norm});
  }
  return {kernels.device().waits() - before.device, waits.works + of_tensor.works - before.works,
          waits.joins + of_tensor.joins - before.joins, of_tensor.joins - before.tensor_joins};
}

}  // namespace

TEST_CASE("in a step the host waits for batches, the loss and the norm, however deep the model") {
  const auto mesh = mesh_of_world();
  const auto nccl = make_fake_nccl(mpi(), everybody());
  auto options = options_for(mesh, 1);
  options.sharding.bucket_bytes = 16 << 10;
  const bool has_loss =
      mesh.coordinate(Axis::pipeline, options.sharding.rank) + 1 == mesh.degree(Axis::pipeline);
  int joins = 0;
  for (const int layers : {2, 6}) {
    still_going("counting");
    CAPTURE(layers);
    options.model.num_hidden_layers = layers;
    const auto waits = waits_of_a_step(*nccl, options);
    // The copy of the batches of the step before, the loss where it is, and the norm.
    CHECK(waits.device == (has_loss ? 3 : 2));
    CHECK(waits.works == 0);
    if (mesh.degree(Axis::tensor) > 1) {
      CHECK(waits.joins > joins);
      CHECK(waits.joins >
            4 * layers * options.schedule.micro_batches / mesh.degree(Axis::pipeline));
    }
    joins = waits.joins;
  }
}

namespace {

/// Matrices that two ranks can share in multiples of 16.
engine::EngineOptions fp8_options() {
  auto options = options_for(mesh_of_world(), 1);
  options.model.hidden_size = 64;
  options.model.intermediate_size = 64;
  options.model.head_dim = 16;
  options.model.num_attention_heads = 4;
  options.model.num_key_value_heads = 4;
  options.model.num_hidden_layers = 2;
  options.numerics.dtype = device::DType::bf16;
  options.numerics.linear_forward = layers::LinearForward::e4m3;
  return options;
}

}  // namespace

TEST_CASE("scales of FP8 copies are found without the host") {
  const auto mesh = mesh_of_world();
  const auto nccl = make_fake_nccl(mpi(), everybody());
  auto options = fp8_options();
  options.numerics.linear_forward = layers::LinearForward::plain;
  const auto plain = waits_of_a_step(*nccl, options);
  options.numerics.linear_forward = layers::LinearForward::e4m3;
  const int here = options.model.num_hidden_layers / mesh.degree(Axis::pipeline);
  const int products = 4 * here * options.schedule.micro_batches;
  for (const auto copies : {layers::WeightCopies::for_each_use, layers::WeightCopies::kept}) {
    still_going("counting");
    options.memory.weight_copies = copies;
    const auto waits = waits_of_a_step(*nccl, options);
    CHECK(waits.device == plain.device);
    CHECK(waits.works == 0);
    if (mesh.degree(Axis::tensor) == 1) continue;
    // A message a product, and one for all weights of a step.
    CHECK(waits.tensor_joins - plain.tensor_joins ==
          products + (copies == layers::WeightCopies::kept ? 1 : 0));
  }
}

TEST_CASE("FP8 over NCCL has the bits of any order that events allow, and of copies kept or not") {
  auto options = fp8_options();
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  options.memory.cuda_graphs = engine::CudaGraphs::yes;
  CHECK(train_over_nccl(*nccl, options) == expected);
  options.memory.cuda_graphs = engine::CudaGraphs::no;
  options.memory.weight_copies = layers::WeightCopies::kept;
  const auto rank = static_cast<std::uint64_t>(mpi().world_rank().value());
  for (const auto& haste :
       {Haste{}, Haste{Haste::Kind::eager}, Haste{Haste::Kind::mixed, 300 + rank}}) {
    still_going("another order");
    CHECK(train_over_nccl(*nccl, options, haste) == expected);
  }
  // Recordings read copies that are made again between them.
  options.memory.cuda_graphs = engine::CudaGraphs::yes;
  CHECK(train_over_nccl(*nccl, options) == expected);
  CHECK(nccl->collectives.elsewhere == 0);
}
