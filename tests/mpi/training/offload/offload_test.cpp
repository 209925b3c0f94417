// SPDX-License-Identifier: Apache-2.0
// State whose home is host memory passes through the device in chunks, and changes no bit; the
// device holds three chunks of it, whatever there is.
#include "trireme/engine/choose_recompute.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using Catch::Contains;
using device::Purpose;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;

namespace {

constexpr int steps = 3;
/// Chunks of a few hundred elements: segments are cut by chunks, and chunks by segments.
constexpr std::int64_t small_chunk = 4096;

bool have_same_bits(const std::vector<ParameterCopy>& one,
                    const std::vector<ParameterCopy>& other) {
  if (one.size() != other.size() || one.empty()) return false;
  for (std::size_t index = 0; index < one.size(); ++index) {
    const auto& a = one[index].values;
    const auto& b = other[index].values;
    if (one[index].name != other[index].name || a.size() != b.size()) return false;
    if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

engine::EngineOptions offloaded(engine::EngineOptions options) {
  options.memory.optimizer_home = engine::Home::host;
  options.memory.chunk_bytes = small_chunk;
  return options;
}

/// Trains with state in the device's memory and in the host's.
void compare_homes(const engine::EngineOptions& options, device::Kernels& kernels) {
  still_going(options.sharding.mesh.text());
  const auto& sharding = options.sharding;
  CAPTURE(sharding.mesh.text(), sharding.zero_level, layout::name(options.schedule.kind),
          device::name(options.numerics.dtype), optim::name(sharding.rule.kind));
  const auto groups = staged(mpi_groups(sharding.mesh), kernels.device());
  const auto expected = run_training(options, groups.views(), kernels, steps);
  const auto found = run_training(offloaded(options), groups.views(), kernels, steps);
  CHECK(found.observed == expected.observed);
  CHECK(have_same_bits(found.parameters, expected.parameters));
}

std::size_t of_purpose(const engine::MemoryUse& use, Purpose purpose) {
  return use[static_cast<std::size_t>(purpose)];
}

/// Large enough that its state outweighs what rounding up leaves.
engine::EngineOptions wide_options() {
  auto options = tiny_options(Architecture::llama, layout::Mesh::of(1, 1, 1), 2);
  options.sharding.rank = base::Rank{0};
  options.model.hidden_size = 192;
  options.model.head_dim = 16;
  options.model.intermediate_size = 320;
  options.numerics.dtype = device::DType::bf16;
  options.memory.chunk_bytes = 64 << 10;
  return options;
}

}  // namespace

TEST_CASE("state at home in host memory changes no bit at any ZeRO level, in any mesh") {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  for (const auto architecture : {Architecture::gpt2, Architecture::llama}) {
    for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
      auto options = tiny_options(architecture, mesh, 12);
      if (mesh.degree(Axis::tensor) > 1) {
        options.sharding.sequence_parallel = model::SequenceParallel::on;
      }
      for (int level = 0; level <= (mesh.degree(Axis::data) > 1 ? 3 : 0); ++level) {
        options.sharding.zero_level = level;
        for (const auto dtype : {device::DType::f32, device::DType::bf16}) {
          options.numerics.dtype = dtype;
          compare_homes(options, *kernels);
        }
      }
    }
  }
}

TEST_CASE("state at home in host memory goes with schedules, rounding at random and sgd") {
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::llama)) {
    auto options = tiny_options(Architecture::llama, mesh, 12);
    options.numerics.dtype = device::DType::bf16;
    options.sharding.rule.rounding = optim::ParameterRounding::stochastic;
    options.sharding.rule.seed = 7;
    if (mesh.degree(Axis::pipeline) > 1) options.schedule.kind = ScheduleKind::zero_bubble_h1;
    compare_homes(options, *kernels);
    options.sharding.rule.kind = optim::RuleKind::sgd;
    if (mesh.degree(Axis::pipeline) == 2 && options.schedule.micro_batches % 2 == 0) {
      options.schedule.kind = ScheduleKind::interleaved;
      options.schedule.virtual_stages = 2;
    }
    compare_homes(options, *kernels);
  }
}

TEST_CASE("a model whose state is many times the device's memory for it trains in that memory") {
  if (mpi().world_size() > 1) return;
  const auto kernels = kernels_under_test();
  if (!kernels) return;
  const auto resident = wide_options();
  auto offloaded = resident;
  offloaded.memory.optimizer_home = engine::Home::host;
  const auto use = engine::measure(offloaded);
  const auto state = of_purpose(engine::measure(resident), Purpose::optimizer);
  const auto cap = of_purpose(use, Purpose::optimizer);
  CHECK(cap <= 3 * static_cast<std::size_t>(offloaded.memory.chunk_bytes));
  CHECK(state >= 4 * cap);
  CHECK(engine::offloaded_bytes(use) == state);
  // Arenas hold what was measured and no more.
  auto capped = engine::Memory::on(kernels->device(), use);
  const auto groups = staged(local_groups(), kernels->device());
  CHECK_THROWS_WITH(engine::Engine(resident, groups.views(), *kernels, capped),
                    Contains("optimizer needs"));
  const auto found = run_training(offloaded, groups.views(), *kernels, steps);
  const auto expected = run_training(resident, groups.views(), *kernels, steps);
  CHECK(found.observed == expected.observed);
  CHECK(have_same_bits(found.parameters, expected.parameters));
}

TEST_CASE("a limit of memory that refuses a model by name holds it without its state") {
  if (mpi().world_size() > 1) return;
  const auto resident = wide_options();
  auto offloaded = resident;
  offloaded.memory.optimizer_home = engine::Home::host;
  const auto total = [](const engine::EngineOptions& options) {
    return engine::total_bytes(engine::measure(options));
  };
  const auto limit = static_cast<std::int64_t>(total(offloaded));
  const auto over = engine::mebibytes_over(total(resident), limit);
  // On CPUs state is in host memory anyway, and another home would free nothing.
  const auto on_cpus = engine::choose_recompute(resident, over, total);
  REQUIRE_FALSE(on_cpus.ok());
  CHECK_THAT(on_cpus.failure().text, !Contains("offload.optimizer"));
  auto on_gpus = resident;
  on_gpus.numerics.gpu_attention.emplace();
  const auto refused = engine::choose_recompute(on_gpus, over, total);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.failure().text, Contains("train.memory_limit is") &&
                                         Contains("too small for stage 0") &&
                                         Contains("offload.optimizer=host or a larger limit"));
  CHECK(engine::mebibytes_over(total(offloaded), limit) == 0);
}

TEST_CASE("rules for whole matrices are refused by name where state is at home in host memory") {
  auto options = tiny_options(Architecture::llama, layout::Mesh::of(1, 1, 1), 2);
  options.sharding.rank = base::Rank{0};
  options.memory.optimizer_home = engine::Home::host;
  CHECK(engine::check(options).ok());
  for (const auto rule : {optim::RuleKind::muon, optim::RuleKind::shampoo, optim::RuleKind::soap}) {
    options.sharding.rule.kind = rule;
    const auto status = engine::check(options);
    REQUIRE_FALSE(status.ok());
    CHECK(status.failure().code == base::ExitCode::usage);
    CHECK_THAT(status.failure().text,
               Contains(std::string("offload.optimizer = host does not go with optimizer.name = ") +
                        optim::name(rule)));
  }
}
