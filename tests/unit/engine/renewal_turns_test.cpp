// SPDX-License-Identifier: Apache-2.0
// Turns of renewals reach the segments that a rank updates.
#include "trireme/model/owned_tensors.hpp"
#include "trireme/sharding/assignment.hpp"

#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>

using namespace trireme;

namespace {

constexpr std::int64_t root_every = 5;

engine::EngineOptions soap_on(const layout::Mesh& mesh, base::Rank rank, int zero_level) {
  auto options = testing::options_of_stage(mesh, 0, 10);
  options.sharding.rank = rank;
  options.sharding.zero_level = zero_level;
  options.sharding.rule.kind = optim::RuleKind::soap;
  options.sharding.rule.factors.root_every = root_every;
  return options;
}

/// Turns of the whole model, by name.
std::map<std::string, std::int64_t> turns_of_model(const engine::EngineOptions& options) {
  const auto list = model::parameters(options.model);
  const auto cost = sharding::cost_of_matrix(options.sharding.rule, options.numerics.dtype);
  const auto turns = model::renewal_turns(list, cost, {});
  std::map<std::string, std::int64_t> by_name;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (model::is_rule_matrix(list[at])) by_name[list[at].tensor.name] = turns[at];
  }
  return by_name;
}

}  // namespace

TEST_CASE("what a rank renews in which update is what the whole model's turns say") {
  for (const auto& mesh : {layout::Mesh::of(1, 1, 1), layout::Mesh::of(2, 2, 1),
                           layout::Mesh::of(1, 2, 2), layout::Mesh::of(2, 1, 2)}) {
    for (const int zero_level : {0, 1}) {
      INFO(mesh.text() << ", ZeRO " << zero_level);
      std::map<std::string, std::int64_t> seen;
      std::map<std::string, std::int64_t> expected;
      for (int rank = 0; rank < mesh.world_size(); ++rank) {
        const auto options = soap_on(mesh, base::Rank(rank), zero_level);
        expected = turns_of_model(options);
        const auto sharding = engine::sharding_of(options);
        for (const auto& segment : sharding.updates().segments) {
          if (segment.content != optim::Content::matrix) continue;
          const auto& name = sharding.matrix_name(segment);
          CHECK(seen.emplace(name, segment.renewal_turn).first->second == segment.renewal_turn);
        }
      }
      CHECK(seen == expected);
      std::set<std::int64_t> distinct;
      for (const auto& [name, turn] : seen) distinct.insert(turn);
      CHECK(distinct.size() == root_every);
    }
  }
}
