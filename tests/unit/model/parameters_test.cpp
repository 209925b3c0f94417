// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/parameters.hpp"

#include "support/model_on_mesh.hpp"
#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("published models have their published numbers of parameters") {
  CHECK(model::parameter_count(gpt2_124m()) == 124'439'808);
  CHECK(model::parameter_count(llama3_8b()) == 8'030'261'248);
  CHECK(model::parameter_count(qwen3_06b()) == 596'049'920);
}

TEST_CASE("FLOPs per token are 6 N + 12 L h s, N what enters products") {
  // A tied head is a product like any other; positions, biases and norms are not.
  const auto gpt2 = gpt2_124m();
  const double layers = 12.0 * 12 * 768 * 768;
  const double head = 50257.0 * 768;
  CHECK(model::flops_per_token(gpt2, 1024) ==
        Approx(6.0 * (layers + head) + 12.0 * 12 * 768 * 1024));
  // Untied: tokens are looked up in a table of their own.
  const auto llama = llama3_8b();
  const double products = 8'030'261'248.0 - 128256.0 * 4096 - (2 * 32 + 1) * 4096.0;
  CHECK(model::flops_per_token(llama, 100) == Approx(6.0 * products + 12.0 * 32 * 4096 * 100));
}

TEST_CASE("parameters have unique names, and those of a fused one are neighbours") {
  for (const auto& config : {gpt2_124m(), llama3_8b(), qwen3_06b()}) {
    std::set<std::string> names;
    std::set<std::string> finished;
    std::string current;
    for (const auto& parameter : model::parameters(config)) {
      CHECK(names.insert(parameter.tensor.name).second);
      if (parameter.fused_name == current) continue;
      CHECK(finished.insert(parameter.fused_name).second);
      current = parameter.fused_name;
    }
  }
}

TEST_CASE("the shards of all ranks cover every parameter of every model") {
  for (const auto& config : {gpt2_124m(), llama3_8b(), qwen3_06b()}) {
    for (const int tensor_parallel : {1, 2, 4, 12, 16}) {
      const auto mesh = layout::Mesh::of(1, 1, tensor_parallel);
      if (!testing::check_on(config, mesh).ok()) continue;
      for (const auto& parameter : model::parameters(config)) {
        std::int64_t covered = 0;
        for (int rank = 0; rank < tensor_parallel; ++rank) {
          covered +=
              layout::element_count(layout::shard_box(parameter.tensor, mesh, base::Rank{rank}));
        }
        const auto replicas = layout::replica_count(parameter.tensor, mesh, layout::Axis::tensor);
        CHECK(covered == replicas * layout::element_count(parameter.tensor.shape));
      }
    }
  }
}

TEST_CASE("meshes that would split a head are refused with the choices that do not") {
  const auto status = testing::check_on(gpt2_124m(), layout::Mesh::of(1, 1, 8));
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().text ==
        "parallel.tensor = 8 does not divide model.num_attention_heads = 12 (each rank holds "
        "whole heads); try 1, 2, 3, 4, 6, 12");
  CHECK_FALSE(testing::check_on(gpt2_124m(), layout::Mesh::of(13, 1, 1)).ok());
}
