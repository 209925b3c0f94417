// SPDX-License-Identifier: Apache-2.0
// Training over groups of NCCL, with a stand-in for the library whose sums are in other orders than
// ours.
#include "trireme/comm/peer_error.hpp"
#include "trireme/device/passing_device.hpp"
#include "trireme/engine/measure.hpp"

#include "comm/core/progress_engine.hpp"
#include "mpi/nccl/training_over_nccl.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <utility>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

/// The order that a device forgets.
enum class Forgets { that_it_follows_groups, that_groups_follow_it };

/// Passes all on but that.
class Forgetful final : public device::PassingDevice {
 public:
  Forgetful(device::Device& inner, Forgets what) : PassingDevice(inner), what_(what) {
    // Groups watch this device, and the host waits for the other.
    inner.add(mpi().progress());
  }
  Forgetful(const Forgetful&) = delete;
  Forgetful& operator=(const Forgetful&) = delete;
  ~Forgetful() override { inner().remove(mpi().progress()); }

  device::Event record() override {
    return what_ == Forgets::that_groups_follow_it ? device::Event() : inner().record();
  }
  void follow(const device::Event& event) override {
    if (what_ != Forgets::that_it_follows_groups) inner().follow(event);
  }

 private:
  Forgets what_;
};

}  // namespace

TEST_CASE(
    "training over NCCL is that over the host but for the order of sums, and repeats itself") {
  const auto mesh = mesh_of_world();
  still_going(mesh.text());
  const auto cpu = device::make_cpu_kernels(1);
  const auto on_host = mpi_groups(mesh);
  const auto options = options_for(mesh, 0);
  const auto expected = train(options, on_host.views(), *cpu, steps_over_nccl);
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto found = train_over_nccl(*nccl, options);
  CHECK(distance(found, expected) <= 1e-5);
  CHECK(train_over_nccl(*nccl, options) == found);
  // Shards of an optimizer are sums of the same numbers in the same order.
  CHECK(train_over_nccl(*nccl, options_for(mesh, 1)) == found);
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}

TEST_CASE("matrices cut between owners train over NCCL as over the host") {
  auto options = options_for(mesh_of_world(), 1);
  options.sharding.rule.kind = optim::RuleKind::muon;
  options.sharding.assignment = ownership::Assignment::contiguous;
  // As many matrices as no two ranks divide evenly, in buckets of few.
  options.model.num_hidden_layers = 3 * options.sharding.mesh.degree(Axis::pipeline);
  options.sharding.bucket_bytes = 16 << 10;
  still_going(options.sharding.mesh.text());
  const auto cpu = device::make_cpu_kernels(1);
  const auto on_host = mpi_groups(options.sharding.mesh);
  const auto expected = train(options, on_host.views(), *cpu, steps_over_nccl);
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto found = train_over_nccl(*nccl, options);
  CHECK(distance(found, expected) <= 1e-5);
  CHECK(train_over_nccl(*nccl, options) == found);
  CHECK((nccl->calls["ncclReduce"] > 0) == (options.sharding.mesh.degree(Axis::data) > 1));
  CHECK(nccl->aborted == 0);
}

TEST_CASE("streams that run in any order that events allow change no bit") {
  auto options = options_for(mesh_of_world(), 1);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto rank = static_cast<std::uint64_t>(mpi().world_rank().value());
  CHECK(train_over_nccl(*nccl, options, {Haste::Kind::eager}) == expected);
  for (const std::uint64_t seed : {1U, 2U}) {
    still_going("another order");
    CHECK(train_over_nccl(*nccl, options, {Haste::Kind::mixed, 100 * seed + rank}) == expected);
  }
}

TEST_CASE("parameters are gathered while forward computes, from CUDA graphs too, with all bits") {
  auto options = options_for(mesh_of_world(), 0);
  // Buckets of a layer's size, so that several waits lie in each forward.
  options.model.num_hidden_layers = 3 * options.sharding.mesh.degree(Axis::pipeline);
  options.sharding.bucket_bytes = 16 << 10;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  options.sharding.zero_level = 1;
  const auto rank = static_cast<std::uint64_t>(mpi().world_rank().value());
  for (const auto graphs : {engine::CudaGraphs::no, engine::CudaGraphs::yes}) {
    options.memory.cuda_graphs = graphs;
    for (const auto& haste :
         {Haste{}, Haste{Haste::Kind::eager}, Haste{Haste::Kind::mixed, 500 + rank}}) {
      still_going("another order");
      CHECK(train_over_nccl(*nccl, options, haste) == expected);
    }
  }
  CHECK(nccl->aborted == 0);
  CHECK(nccl->alive() == 0);
}

TEST_CASE("halves beside collectives of NCCL train as the whole, in any order that events allow") {
  const int ranks = mpi().world_size();
  if (ranks != 2 && ranks != 4) return;
  const auto sequence = GENERATE(model::SequenceParallel::off, model::SequenceParallel::on);
  const auto micro_batch = GENERATE(2, 3);
  auto options = options_for(layout::Mesh::of(1, 1, ranks), 0);
  options.model.num_hidden_layers = 3;
  options.schedule.micro_batch = micro_batch;
  options.sharding.sequence_parallel = sequence;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto whole = train_over_nccl(*nccl, options);
  CHECK(nccl->calls["ncclBroadcast"] == 0);
  options.schedule.tensor_overlap = layers::TensorOverlap::halves;
  const auto expected = train_over_nccl(*nccl, options);
  CHECK(distance(expected, whole) <= 1e-6);
  // Unequal parts of a half's rows.
  CHECK((nccl->calls["ncclBroadcast"] > 0) == (sequence == model::SequenceParallel::on));
  const auto rank = static_cast<std::uint64_t>(mpi().world_rank().value());
  for (const auto graphs : {engine::CudaGraphs::no, engine::CudaGraphs::yes}) {
    options.memory.cuda_graphs = graphs;
    for (const auto& haste : {Haste{Haste::Kind::eager}, Haste{Haste::Kind::mixed, 700 + rank}}) {
      still_going("another order");
      CHECK(train_over_nccl(*nccl, options, haste) == expected);
    }
  }
  CHECK(nccl->aborted == 0);
}

TEST_CASE("a gather of parameters that never ends is named at the deadline, in the next schedule") {
  if (mpi().world_size() < 2) return;
  still_going("a gather that never ends");
  constexpr double deadline_seconds = 5;
  auto options = options_for(layout::Mesh::of(1, mpi().world_size(), 1), 1);
  options.sharding.bucket_bytes = 16 << 10;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  SimulatedKernels kernels(device::make_cpu_kernels(1));
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  auto groups = mpi_groups(options.sharding.mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclOptions of_nccl;
  of_nccl.timeout_seconds = deadline_seconds;
  comm::NcclGroups parent(nccl->library(), mpi(), *world, kernels.device(), of_nccl);
  for (auto& [axis, ends, group] : groups.all()) {
    if (axis == layout::Axis::data) group = parent.split(std::move(group));
  }
  std::string said;
  try {
    engine::Engine engine(options, groups.views(), kernels, memory);
    engine.initialise();
    fill(engine, 0);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    world->barrier();
    nccl->faults.never_ends = true;
    engine.update({1, 3e-3, reduced.gradient_norm});
    fill(engine, 1);
    engine.run_schedule();
  } catch (const comm::PeerError& error) {
    said = error.what();
  }
  CHECK_THAT(said, Catch::Matchers::Contains("all_gather number") &&
                       Catch::Matchers::Contains("process group 'dp'"));
  CHECK(nccl->alive() == 1);  // the parent's
}

namespace {

/// The same over groups of a forgetful device. Its memory outlives all that is still under way.
std::vector<Observed> train_forgetfully(FakeNccl& nccl, const engine::EngineOptions& options,
                                        Forgets what) {
  SimulatedKernels kernels(device::make_cpu_kernels(1));
  Forgetful forgetful(kernels.device(), what);
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  auto groups = mpi_groups(options.sharding.mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclGroups parent(nccl.library(), mpi(), *world, forgetful);
  for (auto& [axis, ends, group] : groups.all()) {
    group = parent.split(std::move(group));
  }
  return train_in(memory, options, groups, kernels);
}

}  // namespace

TEST_CASE("a device that does not follow its groups, or they it, is found out") {
  if (mpi().world_size() == 1) return;
  const auto forgets = GENERATE(Forgets::that_it_follows_groups, Forgets::that_groups_follow_it);
  auto options = options_for(mesh_of_world(), 0);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto found = train_forgetfully(*nccl, options, forgets);
  CHECK(!(found == expected));
}
