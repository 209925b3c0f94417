// SPDX-License-Identifier: Apache-2.0
// train.activation_checkpointing = auto: each stage computes again what lets its ranks fit, the
// same on all of them, and the numbers stay those of a run that keeps everything.
#include "train/start/fitted_options.hpp"

#include "trireme/comm/agree.hpp"
#include "trireme/engine/choose_recompute.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;

namespace {

engine::EngineOptions options_for(const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::llama);
  options.model.num_hidden_layers = 4;
  options.sharding.mesh = mesh;
  options.sharding.rank = mpi().world_rank();
  options.sharding.zero_level = 1;
  options.schedule.micro_batch = 4;
  options.schedule.micro_batches = 4;
  options.schedule.sequence_length = 512;
  options.numerics.clip_norm = 1.0;
  return options;
}

std::int64_t total(const engine::EngineOptions& options) {
  return static_cast<std::int64_t>(engine::total_bytes(engine::measure(options)));
}

config::TrainOptions automatic(std::int64_t limit) {
  config::TrainOptions keys;
  keys.activation_checkpointing.reset();
  keys.memory_limit = limit;
  return keys;
}

/// Largest total of a rank that keeps everything.
std::int64_t largest_total(const engine::EngineOptions& options, comm::ProcessGroup& world) {
  auto kibibytes = static_cast<std::int32_t>(total(options) / 1024);
  world.all_reduce({&kibibytes, device::DType::i32, {1}}, comm::ReduceOp::max);
  return std::int64_t{kibibytes} * 1024;
}

}  // namespace

TEST_CASE("every stage computes again what lets its ranks fit, and trains to the same bits") {
  const auto world = mpi().make_world();
  for (const auto& mesh : meshes_of(mpi().world_size(), model::Architecture::llama)) {
    CAPTURE(mesh.text());
    const auto options = options_for(mesh);
    const auto kernels = device::make_cpu_kernels(1);
    const auto groups = mpi_groups(mesh);
    const auto expected = testing::train(options, groups.views(), *kernels, 1);
    const auto most = largest_total(options, *world);
    REQUIRE(most > std::int64_t{8} << 20);
    for (const auto over : {1, 4}) {
      const auto limit = most - (std::int64_t{over} << 20);
      const auto fitted = trireme::train::fitted_options(options, automatic(limit), {}, *world);
      CHECK(total(fitted) <= limit);
      CHECK((total(options) <= limit) == (fitted.memory.recompute == layers::Recompute{}));
      CHECK(testing::train(fitted, groups.views(), *kernels, 1) == expected);
    }
  }
}

TEST_CASE("what fits counts FP8 copies of weights, and the updates of every rank") {
  const auto world = mpi().make_world();
  for (const auto rule : {optim::RuleKind::adamw, optim::RuleKind::shampoo}) {
    auto options = options_for(layout::Mesh::of(1, mpi().world_size(), 1));
    options.model.hidden_size = 64;
    options.model.intermediate_size = 64;
    options.model.num_attention_heads = 4;
    options.model.num_key_value_heads = 2;
    options.model.head_dim = 16;
    options.numerics.dtype = device::DType::bf16;
    options.numerics.linear_forward = layers::LinearForward::e4m3;
    options.sharding.rule.kind = rule;
    options = engine::with_recompute(options, {});
    const auto most = largest_total(options, *world);
    for (const auto part : {70, 80, 99}) {
      const auto limit = most * part / 100;
      CAPTURE(part);
      const auto fitted = trireme::train::fitted_options(options, automatic(limit), {}, *world);
      CHECK(total(fitted) <= limit);
    }
  }
}

TEST_CASE("options that name their set stay, and so do those that fit") {
  const auto world = mpi().make_world();
  const auto mesh = layout::Mesh::of(1, mpi().world_size(), 1);
  const auto options = engine::with_recompute(options_for(mesh), {layers::Activation::norms});
  config::TrainOptions keys;
  keys.activation_checkpointing = std::vector<std::string>{"norms"};
  keys.memory_limit = 1;
  CHECK(trireme::train::fitted_options(options, keys, {}, *world).memory.recompute ==
        options.memory.recompute);
  const auto plain = options_for(mesh);
  CHECK(trireme::train::fitted_options(plain, automatic(std::int64_t{1} << 40), {}, *world)
            .memory.recompute == layers::Recompute{});
}

TEST_CASE("a limit that no recomputation meets is refused on all ranks") {
  const auto world = mpi().make_world();
  const auto mesh = layout::Mesh::of(1, mpi().world_size(), 1);
  const auto options = options_for(mesh);
  CHECK_THROWS_WITH(trireme::train::fitted_options(options, automatic(1 << 10), {}, *world),
                    Catch::Matchers::Contains("train.memory_limit"));
}

TEST_CASE("a zb-h2 that does not fit on one rank is refused on all, unless stages choose") {
  if (mpi().world_size() != 2) return;
  const auto world = mpi().make_world();
  auto options = options_for(layout::Mesh::of(2, 1, 1));
  options.schedule.kind = layout::ScheduleKind::zero_bubble_h2;
  // The last stage keeps for its weights' gradients what it would compute again.
  options.model.num_hidden_layers = 6;
  options.schedule.stage_layers = {5, 1};
  const auto most = largest_total(options, *world);
  config::TrainOptions keys;
  keys.activation_checkpointing = std::vector<std::string>{"none"};
  const auto fitted = [&] { return trireme::train::fitted_options(options, keys, {}, *world); };
  keys.memory_limit = most + 1024;
  CHECK(fitted().memory.recompute == layers::Recompute{});
  // Only the larger stage is above it.
  keys.memory_limit = most - (std::int64_t{1} << 20);
  CHECK_THROWS_WITH(fitted(), Catch::Matchers::Contains("holds activations of 3 micro-batches"));
  keys.activation_checkpointing.reset();
  CHECK(total(fitted()) <= keys.memory_limit);
  // One stage runs 1f1b.
  keys.activation_checkpointing = std::vector<std::string>{"none"};
  options.schedule.stage_layers.clear();
  options.sharding.mesh = layout::Mesh::of(1, 2, 1);
  keys.memory_limit = 1;
  CHECK_NOTHROW(fitted());
}
