// SPDX-License-Identifier: Apache-2.0
// Parameters that tensor-parallel ranks all hold in whole keep the same bits on each of them, even
// where the replicas of each add up gradients in an order of their own.
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/forwarded_group.hpp"
#include "support/mpi/world.hpp"
#include "train/saving/replica_check.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <utility>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;
using model::SequenceParallel;

namespace {

/// A data-parallel group whose sums are a last bit larger on every other tensor-parallel rank: what
/// another order of adding may do, alike on all members of the group.
class OtherOrder final : public ForwardedGroup {
 public:
  OtherOrder(comm::ProcessGroup& inner, bool larger) : ForwardedGroup(inner), larger_(larger) {}

  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp op) override {
    inner_.start_all_reduce(x, op).wait();
    return shifted(x);
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                  const comm::Cuts& cuts) override {
    inner_.start_reduce_scatter(whole, part, cuts).wait();
    return shifted(part);
  }

 private:
  comm::Work shifted(const device::Tensor& sum) const {
    auto* const values = sum.f32();
    for (std::int64_t index = 0; larger_ && index < sum.element_count(); ++index) {
      values[index] = std::nextafter(values[index], std::numeric_limits<float>::infinity());
    }
    return {};
  }

  bool larger_;
};

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches = 12 / mesh.degree(Axis::data);
  options.schedule.sequence_length = 12;
  options.numerics.clip_norm = 1.0;
  return options;
}

std::string difference_after_training(const engine::EngineOptions& options) {
  const auto groups = mpi_groups(options.sharding.mesh);
  const bool larger =
      options.sharding.mesh.coordinate(Axis::tensor, options.sharding.rank) % 2 == 1;
  OtherOrder data(groups.on(Axis::data), larger);
  auto views = groups.views();
  views.set(Axis::data, data);
  const auto kernels = device::make_reference_kernels();
  auto memory = engine::Memory::on(kernels->device(), engine::measure(options));
  engine::Engine engine(options, views, *kernels, memory);
  engine.initialise();
  for (int step = 0; step < 3; ++step) {
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 1e-2, reduced.gradient_norm});
  }
  return train::replica_difference(engine, views, options.sharding.rank);
}

}  // namespace

TEST_CASE("uncut parameters stay alike on tensor-parallel ranks whose replicas add otherwise") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
      if (mesh.degree(Axis::tensor) == 1 || mesh.degree(Axis::data) == 1) continue;
      for (const auto& [level, sequence] : {std::pair{0, SequenceParallel::on},
                                            {1, SequenceParallel::on},
                                            {0, SequenceParallel::off},
                                            {1, SequenceParallel::off}}) {
        auto options = options_for(architecture, mesh);
        options.sharding.zero_level = level;
        options.sharding.sequence_parallel = sequence;
        CAPTURE(mesh.text(), model::name(architecture), options.sharding.zero_level,
                sequence == SequenceParallel::on);
        still_going(mesh.text());
        CHECK(difference_after_training(options).empty());
        options.sharding.rule.kind = optim::RuleKind::muon;
        CHECK(difference_after_training(options).empty());
      }
    }
  }
}
