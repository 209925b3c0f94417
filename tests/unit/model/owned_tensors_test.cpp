// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/owned_tensors.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::map<std::string, ownership::OwnedTensor> by_name(const model::ModelConfig& config,
                                                      int tensor) {
  std::map<std::string, ownership::OwnedTensor> tensors;
  for (auto& each : model::owned_tensors(config, tensor, model::muon_cost)) {
    const auto name = each.name;
    tensors.emplace(name, std::move(each));
  }
  return tensors;
}

}  // namespace

TEST_CASE("q, k, v, gate and up are matrices of their own, of whole shape at any tensor degree") {
  for (const int tensor : {1, 2}) {
    const auto tensors = by_name(qwen3_06b(), tensor);
    const auto shape = [&](const char* name) { return tensors.at(name).shape; };
    CHECK(shape("layers.3.attention.q.weight") == ownership::MatrixShape{2048, 1024});
    CHECK(shape("layers.3.attention.k.weight") == ownership::MatrixShape{1024, 1024});
    CHECK(shape("layers.3.attention.v.weight") == ownership::MatrixShape{1024, 1024});
    CHECK(shape("layers.3.attention.output.weight") == ownership::MatrixShape{1024, 2048});
    CHECK(shape("layers.3.mlp.gate.weight") == ownership::MatrixShape{3072, 1024});
    CHECK(shape("layers.3.mlp.up.weight") == ownership::MatrixShape{3072, 1024});
    CHECK(shape("layers.3.mlp.down.weight") == ownership::MatrixShape{1024, 3072});
    const auto matrices = std::count_if(tensors.begin(), tensors.end(),
                                        [](const auto& each) { return each.second.is_matrix(); });
    CHECK(matrices == 28 * 7);
    CHECK(tensors.at("layers.3.mlp.up.weight").held_elements == 3072 * 1024 / tensor);
  }
}

TEST_CASE("embeddings, heads, norms and biases are none of the rule's matrices") {
  for (const auto& config : {gpt2_124m(), llama3_8b(), qwen3_06b()}) {
    for (const auto& [name, tensor] : by_name(config, 1)) {
      INFO(name);
      const bool outside = name.find("norm") != std::string::npos ||
                           name.find("bias") != std::string::npos ||
                           name.find("layers.") == std::string::npos;
      CHECK(tensor.is_matrix() == !outside);
    }
  }
}

TEST_CASE("elements that are held add up to the model, key heads once for each replica") {
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : by_name(llama3_8b(), 1)) elements += tensor.held_elements;
  CHECK(elements == 8'030'261'248);
  // Eight key heads on sixteen ranks: each holds one.
  CHECK(by_name(llama3_8b(), 16).at("layers.0.attention.k.weight").held_elements == 128 * 4096);
}

TEST_CASE("where buckets end with units each layer but the last begins one with its first matrix") {
  std::vector<std::string> begin;
  for (const auto& each :
       model::owned_tensors(llama3_8b(), 1, model::muon_cost, {}, model::BucketBorders::units)) {
    if (each.begins_bucket) begin.push_back(each.name);
  }
  REQUIRE(begin.size() == 31);
  CHECK(begin.front() == "layers.30.attention.q.weight");
  CHECK(begin.back() == "layers.0.attention.q.weight");
  for (const auto& [name, tensor] : by_name(llama3_8b(), 1)) CHECK_FALSE(tensor.begins_bucket);
}

TEST_CASE("tensors come in the order of backward") {
  std::vector<std::string> names;
  for (const auto& each : model::owned_tensors(llama3_8b(), 1, model::muon_cost)) {
    names.push_back(each.name);
  }
  const auto at = [&](const char* name) {
    const auto found = std::find(names.begin(), names.end(), name);
    REQUIRE(found != names.end());
    return found - names.begin();
  };
  CHECK(at("head.weight") < at("layers.31.mlp.down.weight"));
  CHECK(at("layers.31.mlp.down.weight") < at("layers.30.attention.q.weight"));
  CHECK(at("layers.0.mlp.down.weight") < at("embedding.weight"));
  CHECK(names.back() == "embedding.weight");
}

TEST_CASE("patterns leave matrices to AdamW, and heads are matrices of their own") {
  const model::MatrixSelection selection{{"layers.0.*", "*.attention.output.weight"}, true};
  const auto config = qwen3_06b();
  REQUIRE(model::check(selection, config).ok());
  double heads = 0;
  for (const auto& each : model::owned_tensors(config, 1, model::muon_cost, selection)) {
    INFO(each.name);
    const bool left =
        each.name.starts_with("layers.0.") || each.name.ends_with(".attention.output.weight") ||
        !each.name.starts_with("layers.") || each.name.find("norm") != std::string::npos;
    CHECK(each.is_matrix() == !left);
    if (each.name == "layers.1.attention.q.weight") heads = each.flops;
  }
  // Sixteen heads of 128 rows.
  CHECK(heads == 16 * model::muon_cost({128, 1024}).flops);
}

TEST_CASE("patterns that name no matrix, or a part of a product, are refused") {
  const auto message = [](const char* pattern) {
    const auto status = model::check({{pattern}, false}, qwen3_06b());
    return status.ok() ? std::string() : status.failure().text;
  };
  using Catch::Matchers::Contains;
  CHECK_THAT(message("layers.99.*"), Contains("optimizer.adamw_matrices has layers.99.*") &&
                                         Contains("layers.0.attention.q.weight"));
  CHECK_THAT(message("*norm*"), Contains("no matrix of a layer"));
  CHECK_THAT(message("*.attention.q.weight"), Contains("names only one of") &&
                                                  Contains("layers.0.attention.q.weight") &&
                                                  Contains("name both or neither"));
  CHECK(message("*.mlp.*").empty());
}

TEST_CASE("a matrix costs its cheapest form, and can be shared") {
  const auto cost = model::muon_cost({1024, 4096});
  CHECK(cost.flops == 47.0 * 1024 * 1024 * 1024);
  CHECK(cost.split.possible());
}

TEST_CASE("turns of renewals are flat over a round, and those of the whole model in any list") {
  constexpr std::int64_t every = 6;
  const model::CostOfMatrix cost = [](const ownership::MatrixShape& shape) {
    const auto cube = [](std::int64_t side) {
      return static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
    };
    const double work = cube(shape.rows) + cube(shape.columns);
    return model::MatrixCost{1e9 + work / every, {}, {work, every, 0}};
  };
  // Six matrices a layer: numbered one after another, a turn would have all that are alike.
  for (const auto& config : {gpt2_124m(), qwen3_06b()}) {
    const auto list = model::parameters(config);
    const auto turns = model::renewal_turns(list, cost, {});
    std::map<std::int64_t, double> work;
    double largest = 0;
    std::map<std::string, std::int64_t> by_name;
    for (std::size_t at = 0; at < list.size(); ++at) {
      if (!model::is_rule_matrix(list[at])) continue;
      const auto& shape = list[at].tensor.shape;
      const auto renewal = cost({shape[0], shape[1]}).renewal.flops;
      work[turns[at]] += renewal;
      largest = std::max(largest, renewal);
      by_name[list[at].tensor.name] = turns[at];
    }
    CHECK(work.size() == every);
    for (const auto& [turn, sum] : work) {
      CHECK((turn >= 0 && turn < every));
      CHECK(sum <= work.at(0) + largest);
      CHECK(sum >= work.at(0) - largest);
    }
    for (const auto& owned : model::owned_tensors(config, 2, cost)) {
      if (!owned.is_matrix()) continue;
      REQUIRE(owned.renewals.size() == 1);
      CHECK(owned.renewals.front().turn == by_name.at(owned.name));
    }
  }
  // Fewer matrices than turns are spread over the round.
  auto few = gpt2_124m();
  few.num_hidden_layers = 1;
  const model::CostOfMatrix rare = [&](const ownership::MatrixShape& shape) {
    auto known = cost(shape);
    known.renewal.every = 60;
    return known;
  };
  std::map<std::int64_t, int> seen;
  const auto list = model::parameters(few);
  const auto turns = model::renewal_turns(list, rare, {});
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (model::is_rule_matrix(list[at])) ++seen[turns[at]];
  }
  CHECK(seen == std::map<std::int64_t, int>{{0, 1}, {10, 1}, {20, 1}, {30, 1}, {40, 1}, {50, 1}});
}
