// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/model_config.hpp"

namespace trireme::tests {

/// Shapes as published.
inline model::ModelConfig gpt2_124m() {
  model::ModelConfig config;
  config.architecture = model::Architecture::gpt2;
  config.vocab_size = 50257;
  config.hidden_size = 768;
  config.intermediate_size = 3072;
  config.num_hidden_layers = 12;
  config.num_attention_heads = 12;
  config.num_key_value_heads = 12;
  config.head_dim = 64;
  config.max_position_embeddings = 1024;
  config.tie_word_embeddings = true;
  return config;
}

inline model::ModelConfig llama3_8b() {
  model::ModelConfig config;
  config.architecture = model::Architecture::llama;
  config.vocab_size = 128256;
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.max_position_embeddings = 8192;
  config.rope_theta = 500000.0;
  config.rope_scaling = {model::RopeScalingKind::llama3, 8.0, 1.0, 4.0, 8192};
  return config;
}

inline model::ModelConfig qwen3_06b() {
  model::ModelConfig config;
  config.architecture = model::Architecture::qwen3;
  config.vocab_size = 151936;
  config.hidden_size = 1024;
  config.intermediate_size = 3072;
  config.num_hidden_layers = 28;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.max_position_embeddings = 40960;
  config.rope_theta = 1e6;
  config.norm_eps = 1e-6F;
  config.tie_word_embeddings = true;
  return config;
}

}  // namespace trireme::tests
