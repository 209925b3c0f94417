// SPDX-License-Identifier: Apache-2.0
// Schedules that compute gradients of weights later than those of inputs train to the bits of 1f1b,
// whatever is computed again, cut or dropped.
#include "trireme/base/format.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

constexpr int few_steps = 3;

constexpr ScheduleKind kinds[] = {ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_h2,
                                  ScheduleKind::zero_bubble_v};

/// Two layers a stage.
engine::EngineOptions options_of(Architecture architecture, const layout::Mesh& mesh) {
  auto options = tiny_options(architecture, mesh, 8);
  options.model.num_hidden_layers = 2 * mesh.degree(Axis::pipeline);
  options.numerics.clip_norm = 1.0;
  return options;
}

engine::EngineOptions scheduled(engine::EngineOptions options, ScheduleKind kind) {
  options.schedule.kind = kind;
  options.schedule.virtual_stages = layout::has_virtual_stages(kind) ? 2 : 1;
  return options;
}

std::vector<layout::Mesh> meshes_with_stages() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(2, 1, 1)};
    case 4:
      return {layout::Mesh::of(4, 1, 1), layout::Mesh::of(2, 1, 2), layout::Mesh::of(2, 2, 1)};
    default:
      return {};
  }
}

/// Where one stage holds a tied table once, embedding and head add their gradients in turn, in
/// another order than apart.
bool has_the_bits(const engine::EngineOptions& options) {
  return !options.model.tie_word_embeddings || options.schedule.kind != ScheduleKind::zero_bubble_v;
}

void must_train_alike(const engine::EngineOptions& options) {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto groups = staged(mpi_groups(options.sharding.mesh), kernels->device());
  const auto expected = train(options, groups.views(), *kernels, few_steps);
  for (const auto kind : kinds) {
    const auto other = scheduled(options, kind);
    CAPTURE(layout::name(kind), options.sharding.mesh.text(), options.memory.recompute.text());
    still_going(options.sharding.mesh.text());
    const auto observed = train(other, groups.views(), *kernels, few_steps);
    if (has_the_bits(other)) {
      CHECK(observed == expected);
    } else {
      CHECK(distance(observed, expected) <= 1e-5);
      CHECK(train(other, groups.views(), *kernels, few_steps) == observed);
    }
  }
}

}  // namespace

TEST_CASE("zero-bubble schedules train as 1f1b does") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    for (const auto& mesh : meshes_with_stages()) {
      for (const bool tied : {false, true}) {
        auto options = options_of(architecture, mesh);
        options.model.tie_word_embeddings = tied;
        must_train_alike(options);
        if (mesh.degree(Axis::tensor) == 1) continue;
        options.sharding.sequence_parallel = SequenceParallel::on;
        must_train_alike(options);
      }
    }
  }
}

TEST_CASE("zero-bubble schedules leave what weights need of activations that are computed again") {
  const Recompute sets[] = {{Activation::norms},
                            {Activation::activation},
                            {Activation::attention},
                            {Activation::mlp},
                            {Activation::layer},
                            {Activation::norms, Activation::activation, Activation::attention},
                            Recompute{Activation::norms}.add(Activation::layer, 1)};
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    for (const auto& mesh : meshes_with_stages()) {
      auto options = options_of(architecture, mesh);
      options.model.tie_word_embeddings = false;
      const bool cuts = mesh.degree(Axis::tensor) > 1;
      options.sharding.sequence_parallel = cuts ? SequenceParallel::on : SequenceParallel::off;
      for (const auto& set : sets) {
        options.memory.recompute = set;
        must_train_alike(options);
      }
    }
  }
}

TEST_CASE("zero-bubble schedules drop the same numbers, in bf16, with buckets that are sharded") {
  for (const auto& mesh : meshes_with_stages()) {
    auto options = options_of(Architecture::gpt2, mesh);
    options.model.tie_word_embeddings = false;
    options.model.dropout = 0.2F;
    options.numerics.dtype = device::DType::bf16;
    options.sharding.zero_level = 1;
    must_train_alike(options);
    options.memory.recompute = {Activation::layer};
    if (mesh.degree(Axis::tensor) > 1) options.sharding.sequence_parallel = SequenceParallel::on;
    must_train_alike(options);
  }
}

TEST_CASE("zero-bubble schedules take fewer micro-batches than stages, and empty positions") {
  for (const auto& mesh : meshes_with_stages()) {
    auto options = options_of(Architecture::llama, mesh);
    options.schedule.micro_batches = 1;
    must_train_alike(options);
    if (mesh.degree(Axis::pipeline) != 2) continue;
    options.schedule.micro_batches = 3;
    const auto kernels = kernels_under_test();
    if (!kernels) return;
    const auto groups = staged(mpi_groups(mesh), kernels->device());
    const auto expected = train(options, groups.views(), *kernels, few_steps);
    auto v = scheduled(options, ScheduleKind::zero_bubble_v);
    v.schedule.stage_layers = {0, 3, 1, 0};
    CHECK(train(v, groups.views(), *kernels, few_steps) == expected);
    auto straight = scheduled(options, ScheduleKind::zero_bubble_h1);
    straight.schedule.stage_layers = {4, 0};
    CHECK(train(straight, groups.views(), *kernels, few_steps) == expected);
  }
}
