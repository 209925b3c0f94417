// SPDX-License-Identifier: Apache-2.0
// How far apart layouts' losses are, beside what the rule itself makes of a difference in the last
// bits of gradients: on one rank every gradient is changed a little in every step. Prints the table
// of docs/numerics.md.
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

constexpr int steps = 14;
/// Norm of a change over the norm of what it changes: sums of floats in another order differ by
/// about that.
constexpr double change = 1e-7;
/// Draws of the change: how far it grows depends on where it points.
constexpr int draws = 4;

struct Shape {
  const char* name;
  Architecture architecture;
  std::int64_t hidden;
  int layers;
  int heads;
  int key_heads;
  std::int64_t intermediate;
};
constexpr Shape shapes[] = {{"llama 96 x 7", Architecture::llama, 96, 7, 6, 2, 256},
                            {"llama 48 x 6", Architecture::llama, 48, 6, 12, 4, 80},
                            {"gpt2 64 x 4", Architecture::gpt2, 64, 4, 4, 4, 256},
                            {"qwen3 72 x 5", Architecture::qwen3, 72, 5, 6, 6, 200},
                            {"llama 128 x 3", Architecture::llama, 128, 3, 8, 4, 344}};

engine::EngineOptions options_for(const Shape& shape, optim::RuleKind rule,
                                  const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(shape.architecture);
  options.model.hidden_size = shape.hidden;
  options.model.num_hidden_layers = shape.layers;
  options.model.num_attention_heads = shape.heads;
  options.model.num_key_value_heads = shape.key_heads;
  options.model.head_dim = shape.hidden / shape.heads;
  options.model.intermediate_size = shape.intermediate;
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches = 12 / mesh.degree(Axis::data);
  options.schedule.sequence_length = 32;
  options.sharding.zero_level =
      mesh.degree(Axis::data) > 1 && mesh.degree(Axis::tensor) > 1 ? 1 : 0;
  options.sharding.rule.kind = rule;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = 5;
  return options;
}

/// Adds to each row of a gradient a random vector of `change` of its length, another one in each
/// step. What no layout computes stays zero: rows of tokens that did not occur.
void change_rows(const device::Tensor& gradient, std::uint64_t seed, std::uint64_t stream) {
  auto* const values = gradient.f32();
  const auto columns = gradient.dim(gradient.rank() - 1);
  for (std::int64_t begin = 0; begin < gradient.element_count(); begin += columns) {
    double squares = 0;
    for (auto index = begin; index < begin + columns; ++index) {
      squares += static_cast<double>(values[index]) * static_cast<double>(values[index]);
    }
    const double size = change * std::sqrt(squares / static_cast<double>(columns));
    for (auto index = begin; index < begin + columns; ++index) {
      const auto by = base::philox_normal(seed, stream, static_cast<std::uint64_t>(index));
      values[index] =
          static_cast<float>(static_cast<double>(values[index]) + size * static_cast<double>(by));
    }
  }
}

BeforeUpdate changing(int draw) {
  return [draw](engine::Engine& engine, int step) {
    std::uint64_t stream = 0;
    for (const auto& part : engine.parameter_parts()) {
      const auto columns = part.box.length.back();
      const auto rows = part.gradient.element_count() / columns;
      change_rows(part.gradient.reshape({rows, columns}),
                  100 * static_cast<std::uint64_t>(step) + static_cast<std::uint64_t>(draw),
                  stream++);
    }
  };
}

/// Collective over all ranks. Largest growth of the change over the draws, each on one rank.
double growth(const engine::EngineOptions& options, device::Kernels& kernels,
              const std::vector<Observed>& serial) {
  static const auto world = mpi().make_world({comm::Backend::automatic, 600});
  const auto groups = local_groups();
  float largest = 0;
  for (int draw = world->rank(); draw < draws; draw += world->size()) {
    const auto changed =
        run_training(options, groups.views(), kernels, steps, 3e-3, changing(draw));
    largest = std::max(largest, static_cast<float>(distance(changed.observed, serial)));
  }
  world->all_reduce(device::Tensor(&largest, device::DType::f32, {1}), comm::ReduceOp::max);
  return static_cast<double>(largest);
}

layout::Mesh mesh_of_all() {
  switch (mpi().world_size()) {
    case 2:
      return layout::Mesh::of(1, 1, 2);
    case 3:
      return layout::Mesh::of(1, 3, 1);
    default:
      return layout::Mesh::of(1, 2, 2);
  }
}

void compare(optim::RuleKind rule) {
  const auto kernels = device::make_cpu_kernels(1);
  const auto mesh = mesh_of_all();
  const auto groups = mpi_groups(mesh);
  for (const auto& shape : shapes) {
    still_going(shape.name);
    const auto whole = options_for(shape, rule, layout::Mesh::of(1, 1, 1));
    const auto local = local_groups();
    const auto serial = train(whole, local.views(), *kernels, steps);
    const double grown = growth(whole, *kernels, serial);
    const auto options = options_for(shape, rule, mesh);
    const double apart = distance(train(options, groups.views(), *kernels, steps), serial);
    if (mpi().world_rank().value() == 0) {
      std::printf("%-8s %-14s %8lld parameters  %-18s apart %.1e  changed by 1e-7: %.1e\n",
                  optim::name(rule), shape.name,
                  static_cast<long long>(model::parameter_count(whole.model)), mesh.text().c_str(),
                  apart, grown);
      std::fflush(stdout);
    }
    CAPTURE(optim::name(rule), shape.name, mesh.text(), apart, grown);
    CHECK(serial.back().loss < serial.front().loss);
    CHECK(apart <= 10 * grown);
  }
}

}  // namespace

TEST_CASE("layouts with Shampoo are as far apart as a change of 1e-7 makes one rank") {
  compare(optim::RuleKind::shampoo);
}

TEST_CASE("layouts with SOAP are as far apart as a change of 1e-7 makes one rank") {
  compare(optim::RuleKind::soap);
}
