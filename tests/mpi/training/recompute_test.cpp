// SPDX-License-Identifier: Apache-2.0
// Activations that backward computes again have the bits of those that are kept, whatever the set,
// in every layout.
#include "mpi/training/fp8_options.hpp"
#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using model::Architecture;

namespace {

constexpr int steps = 2;

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  auto options = tiny_options(architecture, mesh, 8);
  options.model.num_hidden_layers = 2 * mesh.degree(Axis::pipeline);
  options.schedule.micro_batch = 2;
  options.sharding.bucket_bytes = sharding::Options{}.bucket_bytes;
  options.numerics.clip_norm = 1.0;
  return options;
}

/// Each kind alone, sets in which one kind needs another's result, and different layers.
std::vector<Recompute> all_sets() {
  return {{Activation::norms},
          {Activation::activation},
          {Activation::attention},
          {Activation::mlp},
          {Activation::layer},
          {Activation::norms, Activation::activation},
          {Activation::norms, Activation::attention, Activation::mlp},
          {Activation::norms, Activation::activation, Activation::attention, Activation::mlp,
           Activation::layer},
          Recompute{Activation::norms}.add(Activation::layer, 1).add(Activation::attention, 1)};
}

void check_sets(const engine::EngineOptions& options, const std::vector<Recompute>& sets) {
  CAPTURE(options.sharding.mesh.text(), model::name(options.model.architecture));
  still_going(options.sharding.mesh.text());
  const auto kernels = kernels_under_test();
  const auto groups = staged(mpi_groups(options.sharding.mesh), kernels->device());
  const auto expected = train(options, groups.views(), *kernels, steps);
  REQUIRE(expected.size() == steps);
  for (const auto& set : sets) {
    CAPTURE(set.text());
    auto again = options;
    again.memory.recompute = set;
    CHECK(train(again, groups.views(), *kernels, steps) == expected);
  }
}

}  // namespace

TEST_CASE("every set of recomputed activations trains to the same bits") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
      auto options = options_for(architecture, mesh);
      check_sets(options, all_sets());
      if (mesh.degree(Axis::tensor) == 1) continue;
      options.sharding.sequence_parallel = model::SequenceParallel::on;
      check_sets(options, all_sets());
    }
  }
}

TEST_CASE("recomputed activations drop the same numbers, in bf16 and in stages that take turns") {
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::gpt2)) {
    auto options = options_for(Architecture::gpt2, mesh);
    options.model.dropout = 0.2F;
    options.numerics.dtype = device::DType::bf16;
    const int stages = mesh.degree(Axis::pipeline);
    if (stages > 1) {
      options.model.num_hidden_layers = 4 * stages;
      options.schedule.kind = layout::ScheduleKind::interleaved;
      options.schedule.virtual_stages = 2;
      options.schedule.micro_batches = 2 * stages;
    }
    // Three layers of four: one chunk in whole, the other in half.
    auto sets = all_sets();
    sets.push_back(Recompute{}.add(Activation::layer, 3).add(Activation::mlp, 1));
    check_sets(options, sets);
  }
}

TEST_CASE("recomputed products are in FP8 where those of forward were") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    for (const auto& mesh : meshes_for_fp8()) {
      auto options = options_in_fp8(architecture, mesh);
      options.schedule.micro_batch = 2;
      options.schedule.sequence_length = 16;
      check_sets(options, all_sets());
    }
  }
}
