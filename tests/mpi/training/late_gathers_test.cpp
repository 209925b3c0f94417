// SPDX-License-Identifier: Apache-2.0
// Parameters that come when forward waits for them, and no earlier, train as those that are there
// behind the update, in every layout.
#include "support/late_gathers.hpp"

#include "trireme/optim/matrix_rule.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

constexpr int steps = 3;

engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  auto options = tiny_options(architecture, mesh, 12);
  options.schedule.sequence_length = 16;
  options.sharding.zero_level = 1;
  options.sharding.bucket_bytes = 8 << 10;
  return options;
}

bool same_bits(const std::vector<ParameterCopy>& some, const std::vector<ParameterCopy>& others) {
  if (some.size() != others.size()) return false;
  for (std::size_t index = 0; index < some.size(); ++index) {
    const auto& a = some[index].values;
    const auto& b = others[index].values;
    if (a.size() != b.size()) return false;
    if (!a.empty() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

void check_layout(const engine::EngineOptions& options) {
  CAPTURE(options.sharding.mesh.text(), options.schedule.virtual_stages);
  still_going(options.sharding.mesh.text());
  const auto groups = mpi_groups(options.sharding.mesh);
  const auto kernels = device::make_reference_kernels();
  const auto expected = run_training(options, groups.views(), *kernels, steps);
  GatherLog log;
  LateGathers late(groups.on(layout::Axis::data), log);
  auto views = groups.views();
  views.set(layout::Axis::data, late);
  const auto found = run_training(options, views, *kernels, steps);
  CHECK(found.observed == expected.observed);
  CHECK(same_bits(found.parameters, expected.parameters));
  CHECK(log.pending == 0);
  CHECK(log.events.empty() == (options.sharding.mesh.degree(Axis::data) == 1));
}

}  // namespace

TEST_CASE("parameters that come while forward computes change no bit, in every layout") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    CAPTURE(model::name(architecture));
    for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
      auto options = options_for(architecture, mesh);
      check_layout(options);
      if (mesh.degree(Axis::data) == 1) continue;
      options.numerics.dtype = device::DType::bf16;
      options.memory.recompute = layers::Recompute{layers::Activation::layer};
      check_layout(options);
    }
  }
}

TEST_CASE("stages that take turns wait for the parameters of each of their chunks") {
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::gpt2)) {
    const int stages = mesh.degree(Axis::pipeline);
    if (stages == 1 || mesh.degree(Axis::data) == 1) continue;
    auto options = options_for(Architecture::gpt2, mesh);
    options.model.num_hidden_layers = 4 * stages;
    options.schedule.kind = layout::ScheduleKind::interleaved;
    options.schedule.virtual_stages = 2;
    options.schedule.micro_batches = 2 * stages;
    check_layout(options);
  }
}

TEST_CASE("matrices come late from their owners as well") {
  for (const auto assignment : {ownership::Assignment::padded, ownership::Assignment::contiguous}) {
    for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::llama)) {
      if (mesh.degree(Axis::data) == 1) continue;
      auto options = options_for(Architecture::llama, mesh);
      options.sharding.rule.kind = optim::RuleKind::muon;
      options.sharding.assignment = assignment;
      check_layout(options);
    }
  }
}
