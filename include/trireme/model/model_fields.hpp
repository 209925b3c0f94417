// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/model_config.hpp"

/// Fields of a model: each name is its key in section `model`, and its field in config.json of the
/// families that say their sizes as Llama does. A visitor gets the name, the member of the section
/// (config::ModelOptions) and that of the model: visit(name, key, member).
namespace trireme::model {

/// Sizes, in the order in which they are checked and written.
template <typename Visit>
void for_each_size(const Visit& visit) {
  using Keys = config::ModelOptions;
  using Model = ModelConfig;
  visit("vocab_size", &Keys::vocab_size, &Model::vocab_size);
  visit("hidden_size", &Keys::hidden_size, &Model::hidden_size);
  visit("intermediate_size", &Keys::intermediate_size, &Model::intermediate_size);
  visit("num_hidden_layers", &Keys::num_hidden_layers, &Model::num_hidden_layers);
  visit("num_attention_heads", &Keys::num_attention_heads, &Model::num_attention_heads);
  visit("num_key_value_heads", &Keys::num_key_value_heads, &Model::num_key_value_heads);
  visit("head_dim", &Keys::head_dim, &Model::head_dim);
  visit("max_position_embeddings", &Keys::max_position_embeddings, &Model::max_position_embeddings);
}

/// Numbers and choices beside the sizes, as far as the family has them.
template <typename Visit>
void for_each_number(const Family& family, const Visit& visit) {
  using Keys = config::ModelOptions;
  using Model = ModelConfig;
  if (family.norm == NormKind::layer) {
    visit("layer_norm_eps", &Keys::layer_norm_eps, &Model::norm_eps);
  } else {
    visit("rms_norm_eps", &Keys::rms_norm_eps, &Model::norm_eps);
  }
  if (family.positions == PositionKind::rotary) {
    visit("rope_theta", &Keys::rope_theta, &Model::rope_theta);
  }
  visit("tie_word_embeddings", &Keys::tie_word_embeddings, &Model::tie_word_embeddings);
  visit("dropout", &Keys::dropout, &Model::dropout);
  visit("initializer_range", &Keys::initializer_range, &Model::initializer_range);
}

/// Numbers of a scaling of this kind, below rope_scaling; llama3 has all of them. Members are those
/// of config::RopeScalingOptions and of RopeScaling.
template <typename Visit>
void for_each_rope_number(RopeScalingKind kind, const Visit& visit) {
  using Keys = config::RopeScalingOptions;
  using Rope = RopeScaling;
  if (kind == RopeScalingKind::none) return;
  visit("factor", &Keys::factor, &Rope::factor);
  if (kind == RopeScalingKind::linear) return;
  visit("low_freq_factor", &Keys::low_freq_factor, &Rope::low_freq_factor);
  visit("high_freq_factor", &Keys::high_freq_factor, &Rope::high_freq_factor);
  visit("original_max_position_embeddings", &Keys::original_max_position_embeddings,
        &Rope::original_max_position_embeddings);
}

}  // namespace trireme::model
