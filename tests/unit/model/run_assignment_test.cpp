// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/run_assignment.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using Catch::Matchers::Contains;
using ownership::Assignment;

namespace {

model::AssignmentQuestion question(const model::ModelConfig& config, const layout::Mesh& mesh,
                                   const ownership::MachineSpeeds& machine) {
  return {.mesh = mesh,
          .bucket_elements = std::int64_t{10} << 20,
          .cost = model::muon_cost,
          .matrices = {},
          .can_share = false,
          .work = {.parameters = static_cast<double>(model::parameter_count(config)),
                   .tokens = 1 << 18,
                   .parameter_bytes = 4},
          .machine = machine};
}

}  // namespace

TEST_CASE("where parts may differ in length a run takes the plan that adds less to a step") {
  const auto config = qwen3_06b();
  const auto asked = question(config, layout::Mesh::of(1, 64, 1), ownership::speeds_of_cpus());
  const auto chosen = model::run_assignment(config, asked);
  // Equal shards of whole matrices need one bucket there, whose reduction nothing hides.
  CHECK(chosen.assignment == Assignment::contiguous);
  CHECK_THAT(chosen.reason, Contains("contiguous adds") && Contains("padded adds"));
}

TEST_CASE("starts for each owner that cost more than all else leave the plan of equal shards") {
  const auto config = qwen3_06b();
  auto machine = ownership::speeds_of_cpus();
  machine.ragged = ownership::RaggedCollectives::start_for_each;
  machine.collective_seconds = 10;
  const auto mesh = layout::Mesh::of(1, 64, 1);
  CHECK(model::run_assignment(config, question(config, mesh, machine)).assignment ==
        Assignment::padded);
}

TEST_CASE("where each layer has its buckets no plan of equal shards is taken") {
  const auto config = qwen3_06b();
  auto machine = ownership::speeds_of_cpus();
  machine.ragged = ownership::RaggedCollectives::start_for_each;
  machine.collective_seconds = 10;
  auto asked = question(config, layout::Mesh::of(1, 64, 1), machine);
  REQUIRE(model::run_assignment(config, asked).assignment == Assignment::padded);
  asked.borders = model::BucketBorders::units;
  const auto chosen = model::run_assignment(config, asked);
  CHECK(chosen.assignment == Assignment::contiguous);
  CHECK_THAT(chosen.reason, !Contains("padded"));
}

TEST_CASE("matrices are shared only where several ranks can compute one") {
  // One layer for sixteen ranks: seven matrices, of which one is 2.9 times a rank's share.
  auto config = qwen3_06b();
  config.num_hidden_layers = 1;
  auto asked = question(config, layout::Mesh::of(1, 16, 1), ownership::speeds_of_cpus());
  CHECK(model::run_assignment(config, asked).assignment != Assignment::shared);
  asked.can_share = true;
  const auto chosen = model::run_assignment(config, asked);
  INFO(chosen.reason);
  CHECK(chosen.assignment == Assignment::shared);
}

TEST_CASE("matrices that stay with AdamW are no reason for a plan") {
  const auto config = qwen3_06b();
  auto asked = question(config, layout::Mesh::of(1, 8, 1), ownership::speeds_of_cpus());
  const auto all = model::run_assignment(config, asked);
  asked.matrices.adamw = {"layers.*.mlp.*"};
  CHECK(model::run_assignment(config, asked).reason != all.reason);
}

TEST_CASE("one data-parallel rank owns all, and nothing is asked") {
  const auto config = qwen3_06b();
  const auto one = model::run_assignment(
      config, question(config, layout::Mesh::of(2, 1, 2), ownership::speeds_of_cpus()));
  CHECK(one.assignment == Assignment::padded);
  CHECK_THAT(one.reason, Contains("one rank owns all"));
}

TEST_CASE("the answer is for a stage with most layers, whatever the rank that asks") {
  auto config = qwen3_06b();
  const auto asked = question(config, layout::Mesh::of(4, 16, 2), ownership::speeds_of_cpus());
  const auto chosen = model::run_assignment(config, asked);
  // Seven layers of 28 in each of four stages; 25 to 27 have seven in the first, too.
  config.num_hidden_layers = 25;
  CHECK(model::run_assignment(config, asked).reason == chosen.reason);
  config.num_hidden_layers = 24;
  CHECK(model::run_assignment(config, asked).reason != chosen.reason);
}
