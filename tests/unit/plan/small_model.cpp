// SPDX-License-Identifier: Apache-2.0
#include "small_model.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/from_config.hpp"

#include "plan/search/candidates.hpp"
#include "unit/predict/machines.hpp"

#include <utility>

namespace trireme::tests {

config::Config small_config(std::vector<std::string> settings) {
  std::vector<std::string> all{"model.architecture=llama",    "model.vocab_size=1001",
                               "model.hidden_size=64",        "model.intermediate_size=100",
                               "model.num_hidden_layers=4",   "model.num_attention_heads=4",
                               "model.num_key_value_heads=2", "model.head_dim=16",
                               "train.sequence_length=32",    "model.max_position_embeddings=32",
                               "train.global_batch=8",        "parallel.bucket_bytes=64KiB"};
  all.insert(all.end(), settings.begin(), settings.end());
  return base::value_or_throw(
      config::Config::resolve({.files = {}, .environment = {}, .settings = std::move(all)}));
}

model::ModelConfig model_of(const config::Config& config) {
  return base::value_or_throw(model::from_config(config, std::nullopt));
}

config::Config with_layout(const config::Config& config, const plan::LayoutChoice& choice) {
  auto changed = config;
  const auto settings = plan::settings_json(choice);
  for (const auto& [key, value] : settings.items()) {
    changed = base::value_or_throw(
        changed.with(key, value.get<std::string>(), config::Origin::program("a test")));
  }
  return changed;
}

predict::Machine small_machine(std::int64_t memory) {
  auto machine = plain_machine();
  machine.node.memory = memory;
  machine.inside.latency = 2e-6;
  machine.network.latency = 5e-6;
  return machine;
}

std::vector<plan::LayoutChoice> all_layouts(const config::Config& config, int ranks) {
  const auto model = model_of(config);
  std::vector<plan::LayoutChoice> all;
  for (const auto& arrangement :
       plan::legal_layouts(config.options(), model, ranks, plan::priced_schedules())) {
    const auto legal = engine::options_from(plan::with_layout(config.options(), arrangement), model,
                                            arrangement.mesh(), base::Rank{0});
    // Rules that are not of the arrangement.
    if (!legal) continue;
    // Parts of a stage of all layers are those of a smaller one, too.
    for (const auto& recompute : plan::recompute_choices(model.num_hidden_layers)) {
      all.push_back(arrangement);
      all.back().recompute = recompute;
    }
  }
  return all;
}

}  // namespace trireme::tests
