// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/parameters.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <cmath>

namespace trireme::model {
namespace {

using layout::Axis;
using layout::Cut;

/// Builder of the list, with the defaults that most parameters share.
class ListBuilder {
 public:
  explicit ListBuilder(const ModelConfig& config) : config_(config) {}

  Parameter& matrix(const std::string& name, Place place, layout::Shape shape,
                    std::vector<Cut> cuts) {
    Parameter parameter;
    parameter.tensor = {name, std::move(shape), std::move(cuts)};
    parameter.place = place;
    parameter.deviation = config_.initializer_range;
    parameter.fused_name = name;
    list_.push_back(std::move(parameter));
    return list_.back();
  }

  Parameter& vector(const std::string& name, Place place, std::int64_t length,
                    Initialisation initialisation, std::vector<Cut> cuts = {}) {
    auto& parameter = matrix(name, place, {length}, std::move(cuts));
    parameter.initialisation = initialisation;
    parameter.decays = false;
    return parameter;
  }

  void norm(const std::string& name, Place place) {
    vector(name + ".weight", place, config_.hidden_size, Initialisation::ones).gradient =
        TensorGradient::partial_in_sequence;
    if (config_.family().norm == NormKind::layer) {
      vector(name + ".bias", place, config_.hidden_size, Initialisation::zeros).gradient =
          TensorGradient::partial_in_sequence;
    }
  }

  std::vector<Parameter> take() { return std::move(list_); }

 private:
  const ModelConfig& config_;
  std::vector<Parameter> list_;
};

/// One of q, k, v: rows are heads, so tensor parallelism cuts between heads.
void add_projection(ListBuilder& list, const ModelConfig& config, int layer, const char* letter,
                    int heads) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.attention.", layer);
  const std::vector<Cut> cuts{{Axis::tensor, 0, config.head_dim, heads}};
  const std::int64_t rows = heads * config.head_dim;
  const bool key_or_value = *letter != 'q';
  auto& weight = list.matrix(prefix + letter + ".weight", place, {rows, config.hidden_size}, cuts);
  weight.fused_name = prefix + "qkv.weight";
  if (key_or_value) weight.gradient = TensorGradient::partial_in_replicas;
}

void add_projection_bias(ListBuilder& list, const ModelConfig& config, int layer,
                         const char* letter, int heads) {
  const auto prefix = base::format("layers.{}.attention.", layer);
  auto& bias =
      list.vector(prefix + letter + ".bias", {Place::Kind::layer, layer}, heads * config.head_dim,
                  Initialisation::zeros, {{Axis::tensor, 0, config.head_dim, heads}});
  bias.fused_name = prefix + "qkv.bias";
  if (*letter != 'q') bias.gradient = TensorGradient::partial_in_replicas;
}

/// Projections back into the residual stream start smaller, by the number of additions to it
/// (Radford et al. 2019, section 2.3).
float residual_deviation(const ModelConfig& config) {
  return config.initializer_range / std::sqrt(2.0F * static_cast<float>(config.num_hidden_layers));
}

void add_attention(ListBuilder& list, const ModelConfig& config, int layer) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.attention", layer);
  const int heads = config.num_attention_heads;
  const int kv_heads = config.num_key_value_heads;
  list.norm(prefix + "_norm", place);
  add_projection(list, config, layer, "q", heads);
  add_projection(list, config, layer, "k", kv_heads);
  add_projection(list, config, layer, "v", kv_heads);
  if (config.family().bias) {
    add_projection_bias(list, config, layer, "q", heads);
    add_projection_bias(list, config, layer, "k", kv_heads);
    add_projection_bias(list, config, layer, "v", kv_heads);
  }
  if (config.family().head_norms) {
    for (const char* which : {".q_norm.weight", ".k_norm.weight"}) {
      list.vector(prefix + which, place, config.head_dim, Initialisation::ones).gradient =
          TensorGradient::partial_in_heads;
    }
  }
  list.matrix(prefix + ".output.weight", place, {config.hidden_size, heads * config.head_dim},
              {{Axis::tensor, 1, config.head_dim, heads}})
      .deviation = residual_deviation(config);
  if (config.family().bias) {
    list.vector(prefix + ".output.bias", place, config.hidden_size, Initialisation::zeros);
  }
}

void add_mlp(ListBuilder& list, const ModelConfig& config, int layer) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.mlp", layer);
  const std::vector<Cut> rows{{Axis::tensor, 0}};
  const layout::Shape wide{config.intermediate_size, config.hidden_size};
  list.norm(prefix + "_norm", place);
  if (config.family().gated_mlp) {
    list.matrix(prefix + ".gate.weight", place, wide, rows).fused_name = prefix + ".gate_up.weight";
    list.matrix(prefix + ".up.weight", place, wide, rows).fused_name = prefix + ".gate_up.weight";
  } else {
    list.matrix(prefix + ".up.weight", place, wide, rows);
  }
  if (config.family().bias) {
    list.vector(prefix + ".up.bias", place, config.intermediate_size, Initialisation::zeros, rows);
  }
  list.matrix(prefix + ".down.weight", place, {config.hidden_size, config.intermediate_size},
              {{Axis::tensor, 1}})
      .deviation = residual_deviation(config);
  if (config.family().bias) {
    list.vector(prefix + ".down.bias", place, config.hidden_size, Initialisation::zeros);
  }
}

}  // namespace

std::vector<Parameter> parameters(const ModelConfig& config) {
  ListBuilder list(config);
  const Place embedding{Place::Kind::embedding, 0};
  const Place head{Place::Kind::head, 0};
  const std::vector<Cut> by_token{{Axis::tensor, 0}};
  const layout::Shape table{config.vocab_size, config.hidden_size};
  list.matrix("embedding.weight", embedding, table, by_token);
  if (!config.has_rotary()) {
    list.matrix("positions.weight", embedding, {config.max_position_embeddings, config.hidden_size},
                {});
  }
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    add_attention(list, config, layer);
    add_mlp(list, config, layer);
  }
  list.norm("final_norm", head);
  if (!config.tie_word_embeddings) list.matrix("head.weight", head, table, by_token);
  return list.take();
}

}  // namespace trireme::model
