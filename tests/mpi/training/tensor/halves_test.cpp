// SPDX-License-Identifier: Apache-2.0
// Halves of a micro-batch in forward, and of a layer's largest weight gradient in backward, give
// the bits of the whole, whatever is cut, gathered, dropped or computed again.
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/model_on_mesh.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layers::TensorOverlap;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

constexpr int few_steps = 2;

/// Layers that halves go on to from one to the next, on every stage.
engine::EngineOptions options_of(Architecture architecture, const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.model.num_hidden_layers = 3 * mesh.degree(Axis::pipeline);
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.schedule.micro_batch = 2;
  options.schedule.micro_batches = 4;
  options.schedule.sequence_length = 12;
  options.sharding.bucket_bytes = 16 << 10;
  options.numerics.clip_norm = 0.5;
  options.numerics.seed = 7;
  return options;
}

std::vector<layout::Mesh> meshes_with_tensor_ranks() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(1, 1, 2)};
    case 4:
      return {layout::Mesh::of(1, 1, 4), layout::Mesh::of(2, 1, 2), layout::Mesh::of(1, 2, 2)};
    case 8:
      return {layout::Mesh::of(2, 2, 2)};
    default:
      return {};
  }
}

bool same_bits(const std::vector<ParameterCopy>& one, const std::vector<ParameterCopy>& other) {
  if (one.size() != other.size() || one.empty()) return false;
  for (std::size_t index = 0; index < one.size(); ++index) {
    const auto& left = one[index].values;
    const auto& right = other[index].values;
    if (left.size() != right.size()) return false;
    if (std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

/// Trains both ways; each run took the memory that was measured for it.
void must_train_alike(engine::EngineOptions options) {
  CAPTURE(options.sharding.mesh.text(), model::name(options.model.architecture),
          options.memory.recompute.text(), options.schedule.micro_batch,
          options.sharding.sequence_parallel == SequenceParallel::on);
  still_going(options.sharding.mesh.text());
  const auto kernels = kernels_under_test();
  const auto groups = staged(mpi_groups(options.sharding.mesh), kernels->device());
  options.schedule.tensor_overlap = TensorOverlap::plain;
  const auto expected = run_training(options, groups.views(), *kernels, few_steps);
  options.schedule.tensor_overlap = TensorOverlap::halves;
  const auto found = run_training(options, groups.views(), *kernels, few_steps);
  REQUIRE(expected.observed.size() == few_steps);
  CHECK(found.observed == expected.observed);
  CHECK(same_bits(found.parameters, expected.parameters));
}

/// With all rows on each rank, and with a part of them.
void must_train_alike_both_ways(engine::EngineOptions options) {
  options.sharding.sequence_parallel = SequenceParallel::off;
  must_train_alike(options);
  options.sharding.sequence_parallel = SequenceParallel::on;
  must_train_alike(options);
}

}  // namespace

TEST_CASE("halves train the three families as whole micro-batches do, also unequal ones") {
  for (const auto& mesh : meshes_with_tensor_ranks()) {
    for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
      if (!check_on(tiny(architecture), mesh).ok()) continue;
      auto options = options_of(architecture, mesh);
      must_train_alike_both_ways(options);
      options.schedule.micro_batch = 3;
      options.schedule.micro_batches = 2;
      must_train_alike_both_ways(options);
      // Backward alone has halves.
      options.schedule.micro_batch = 1;
      must_train_alike_both_ways(options);
    }
  }
}

TEST_CASE("halves share what layers do not keep, and drop the same numbers, in bf16") {
  const Recompute sets[] = {
      {},
      {Activation::norms},
      {Activation::attention, Activation::mlp},
      {Activation::layer},
      Recompute{Activation::norms}.add(Activation::layer, 1).add(Activation::activation, 2)};
  for (const auto& mesh : meshes_with_tensor_ranks()) {
    auto options = options_of(Architecture::gpt2, mesh);
    options.model.dropout = 0.2F;
    options.numerics.dtype = device::DType::bf16;
    for (const auto& set : sets) {
      options.memory.recompute = set;
      must_train_alike_both_ways(options);
    }
  }
}

TEST_CASE("halves keep their bits where data-parallel ranks divide what layers read") {
  for (const auto& mesh : meshes_with_tensor_ranks()) {
    if (mesh.degree(Axis::data) == 1) continue;
    for (const int level : {1, 2, 3}) {
      auto options = options_of(Architecture::llama, mesh);
      options.sharding.zero_level = level;
      must_train_alike_both_ways(options);
      options.memory.recompute = {Activation::layer};
      must_train_alike(options);
    }
  }
}

TEST_CASE("halves go with schedules that interleave stages or split backward") {
  for (const auto& mesh : meshes_with_tensor_ranks()) {
    if (mesh.degree(Axis::pipeline) == 1) continue;
    for (const auto kind :
         {ScheduleKind::interleaved, ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_v}) {
      auto options = options_of(Architecture::llama, mesh);
      options.model.num_hidden_layers = 4 * mesh.degree(Axis::pipeline);
      options.schedule.kind = kind;
      options.schedule.virtual_stages = layout::has_virtual_stages(kind) ? 2 : 1;
      must_train_alike_both_ways(options);
    }
  }
}

TEST_CASE("halves evaluate to the bits of whole micro-batches") {
  for (const auto& mesh : meshes_with_tensor_ranks()) {
    auto options = options_of(Architecture::llama, mesh);
    options.sharding.sequence_parallel = SequenceParallel::on;
    options.schedule.micro_batch = 3;
    options.schedule.micro_batches = 2;
    const auto loss = [&](TensorOverlap overlap) {
      options.schedule.tensor_overlap = overlap;
      const auto kernels = kernels_under_test();
      const auto groups = staged(mpi_groups(mesh), kernels->device());
      auto memory = engine::Memory::on(kernels->device(), engine::measure(options));
      engine::Engine engine(options, groups.views(), *kernels, memory);
      engine.initialise();
      fill(engine, 0);
      return engine.evaluate().loss_sum;
    };
    const auto whole = loss(TensorOverlap::plain);
    CHECK(whole > 0);
    CHECK(loss(TensorOverlap::halves) == whole);
  }
}
