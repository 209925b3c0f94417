// SPDX-License-Identifier: Apache-2.0
#include "qwen3.hpp"

namespace trireme::bench {
namespace {

struct Sizes {
  const char* name;
  int layers;
  std::int64_t hidden;
  int heads;
  int key_value_heads;
  std::int64_t intermediate;
  bool tied;
};

constexpr Sizes all_sizes[] = {
    {"0.6B", 28, 1024, 16, 8, 3072, true},  {"1.7B", 28, 2048, 16, 8, 6144, true},
    {"4B", 36, 2560, 32, 8, 9728, true},    {"8B", 36, 4096, 32, 8, 12288, false},
    {"14B", 40, 5120, 40, 8, 17408, false}, {"32B", 64, 5120, 64, 8, 25600, false}};

Unit unit_of(const model::Parameter& parameter, const model::CostOfMatrix& cost) {
  const ownership::MatrixShape shape{parameter.tensor.shape[0], parameter.tensor.shape[1]};
  const auto n = static_cast<double>(shape.shorter());
  const auto m = static_cast<double>(shape.longer());
  return {parameter.place.layer, cost(shape).flops, n * m, m * n * n};
}

}  // namespace

std::vector<NamedModel> qwen3_models() {
  std::vector<NamedModel> models;
  for (const auto& sizes : all_sizes) {
    model::ModelConfig config;
    config.architecture = model::Architecture::qwen3;
    config.vocab_size = 151936;
    config.hidden_size = sizes.hidden;
    config.intermediate_size = sizes.intermediate;
    config.num_hidden_layers = sizes.layers;
    config.num_attention_heads = sizes.heads;
    config.num_key_value_heads = sizes.key_value_heads;
    config.head_dim = 128;
    config.tie_word_embeddings = sizes.tied;
    models.push_back({sizes.name, config});
  }
  return models;
}

model::MatrixCost standard_cost(const ownership::MatrixShape& shape) {
  return {ownership::newton_schulz_flops(ownership::NewtonSchulzForm::standard, shape), {}};
}

std::vector<Unit> fused_units(const model::ModelConfig& config, const model::CostOfMatrix& cost,
                              FusedCost fused) {
  std::vector<Unit> units;
  auto list = model::parameters(config);
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (!model::is_rule_matrix(list[at])) continue;
    auto whole = list[at];
    auto unit = unit_of(whole, cost);
    while (at + 1 < list.size() && list[at + 1].fused_name == whole.fused_name) {
      const auto part = unit_of(list[++at], cost);
      whole.tensor.shape[0] += list[at].tensor.shape[0];
      const double flops = unit.flops + part.flops;
      unit = unit_of(whole, cost);
      if (fused == FusedCost::of_parts) unit.flops = flops;
    }
    units.push_back(unit);
  }
  return units;
}

std::vector<Unit> separate_units(const model::ModelConfig& config,
                                 const model::CostOfMatrix& cost) {
  std::vector<Unit> units;
  for (const auto& parameter : model::parameters(config)) {
    if (model::is_rule_matrix(parameter)) units.push_back(unit_of(parameter, cost));
  }
  return units;
}

}  // namespace trireme::bench
