// SPDX-License-Identifier: Apache-2.0
// A tied table has two copies, on the first and the last pipeline stage, which must never part.
#include "trireme/comm/bytes.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/forwarded_group.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using comm::ReduceOp;
using comm::Work;
using device::DType;
using device::Tensor;
using layout::Axis;

namespace {

/// Adds in an order of its own, which also depends on where an element lies in the tensor: as rings
/// of NCCL do, which begin at other ranks on each stage and cut each tensor into parts.
class OwnOrder final : public ForwardedGroup {
 public:
  OwnOrder(comm::ProcessGroup& inner, int first) : ForwardedGroup(inner), first_(first) {}

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    if (op != ReduceOp::sum || x.dtype() != DType::f32) return inner_.start_all_reduce(x, op);
    const auto sums = sums_of(x);
    std::copy(sums.begin(), sums.end(), x.f32());
    return {};
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part,
                            const comm::Cuts& /*cuts*/) override {
    const auto sums = sums_of(whole);
    const auto count = part.element_count();
    std::copy_n(sums.begin() + rank() * count, count, part.f32());
    return {};
  }

 private:
  std::vector<float> sums_of(const Tensor& x) const {
    const auto count = static_cast<std::size_t>(x.element_count());
    const auto ranks = static_cast<std::size_t>(size());
    std::vector<float> all(count * ranks);
    inner_.all_gather(x, {all.data(), DType::f32, {static_cast<std::int64_t>(all.size())}});
    std::vector<float> sums(count, 0.0F);
    for (std::size_t index = 0; index < count; ++index) {
      const auto part = index * ranks / count + static_cast<std::size_t>(first_);
      for (std::size_t turn = 0; turn < ranks; ++turn) {
        sums[index] += all[(part + turn) % ranks * count + index];
      }
    }
    return sums;
  }

  int first_;
};

engine::EngineOptions options_for(const layout::Mesh& mesh, int zero_level) {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::gpt2);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 2;
  options.schedule.sequence_length = 24;
  options.sharding.sequence_parallel =
      mesh.degree(Axis::tensor) > 1 ? model::SequenceParallel::on : model::SequenceParallel::off;
  options.sharding.zero_level = zero_level;
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = 7;
  return options;
}

/// Part of the table that this rank has, as bytes.
std::string table_of(engine::Engine& engine) {
  for (const auto& part : engine.parameter_parts()) {
    if (part.name != "embedding.weight") continue;
    return {static_cast<const char*>(part.values.raw()), part.values.byte_count()};
  }
  return {};
}

/// Other bits in one number of the last stage's table, if this rank has it.
void damage(engine::Engine& engine) {
  for (const auto& part : engine.state_parts()) {
    if (part.name != "adamw.first_moment/embedding.weight" || part.primary) continue;
    part.values.f32()[part.values.element_count() - 1] += 1.0F;
  }
}

void train_and_compare(const layout::Mesh& mesh, int zero_level) {
  const auto options = options_for(mesh, zero_level);
  const auto groups = mpi_groups(mesh);
  OwnOrder data(groups.on(layout::Axis::data),
                mesh.coordinate(Axis::pipeline, options.sharding.rank));
  auto views = groups.views();
  views.set(layout::Axis::data, data);
  const auto kernels = device::make_reference_kernels();
  auto memory = engine::Memory::on(kernels->device(), engine::measure(options));
  engine::Engine engine(options, views, *kernels, memory);
  engine.initialise();
  for (int step = 0; step < 5; ++step) {
    fill(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 3e-3, reduced.gradient_norm});
  }
  CHECK_FALSE(engine.tied_copies_differ());
  if (views.ends() != nullptr) {
    const auto copies = comm::all_gather_bytes(*views.ends(), table_of(engine));
    REQUIRE_FALSE(copies.front().empty());
    CHECK(copies.front() == copies.back());
  }
  damage(engine);
  const bool differ = engine.tied_copies_differ();
  // At ZeRO level 0 one data-parallel rank alone looks at the last number.
  std::int32_t seen = differ ? 1 : 0;
  const auto world = mpi().make_world();
  world->all_reduce(Tensor(&seen, DType::i32, {1}), ReduceOp::sum);
  CHECK(seen >= 2 * mesh.degree(Axis::tensor));
}

}  // namespace

TEST_CASE("both copies of a tied table keep the same bits, however each stage's sums are taken") {
  const auto mesh = mpi().world_size() == 8 ? layout::Mesh::of(2, 2, 2) : layout::Mesh::of(2, 3, 1);
  for (const int zero_level : {0, 1}) {
    CAPTURE(mesh.text(), zero_level);
    still_going(mesh.text());
    train_and_compare(mesh, zero_level);
  }
}
