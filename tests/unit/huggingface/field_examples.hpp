// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <map>
#include <string>
#include <vector>

/// Values with which each row of the table of fields is tried.
namespace trireme::tests {

struct Example {
  base::Json value;
  /// Fields that are taken away first: other names of the same setting.
  std::vector<std::string> without = {};
};

/// Values of fields that are read or checked, by name, or by family and name where they differ.
// NOLINTNEXTLINE(readability-function-size): a table
inline const std::map<std::string, Example>& examples() {
  static const std::map<std::string, Example> all{
      {"gpt2/model_type", {"llama"}},
      {"llama/model_type", {"qwen3"}},
      {"qwen3/model_type", {"llama"}},
      {"architectures", {base::Json::array({"LlamaForSequenceClassification"})}},
      {"vocab_size", {77}},
      {"n_embd", {384}},
      {"hidden_size", {512}},
      {"gpt2/hidden_size", {384, {"n_embd"}}},
      {"n_inner", {5}},
      {"intermediate_size", {5}},
      {"n_layer", {3}},
      {"num_hidden_layers", {3}},
      {"gpt2/num_hidden_layers", {3, {"n_layer"}}},
      {"n_head", {6}},
      {"num_attention_heads", {64}},
      {"gpt2/num_attention_heads", {6, {"n_head"}}},
      {"num_key_value_heads", {2}},
      {"head_dim", {12}},
      {"n_positions", {9}},
      {"max_position_embeddings", {9}},
      {"gpt2/max_position_embeddings", {9, {"n_positions"}}},
      {"n_ctx", {9}},
      {"layer_norm_epsilon", {0.5}},
      {"rms_norm_eps", {0.5}},
      {"gpt2/tie_word_embeddings", {false}},
      {"llama/tie_word_embeddings", {true}},
      {"qwen3/tie_word_embeddings", {false}},
      {"resid_pdrop", {0.25}},
      {"embd_pdrop", {0.25}},
      {"attn_pdrop", {0.25}},
      {"initializer_range", {0.5}},
      {"rope_theta", {77.0, {"rope_parameters"}}},
      {"rope_parameters", {{{"rope_type", "linear"}, {"factor", 2}}}},
      {"rope_scaling", {{{"type", "linear"}, {"factor", 2}}, {"rope_parameters"}}},
      {"original_max_position_embeddings", {77}},
      {"layer_types", {base::Json::array({"sliding_attention"})}},
      {"rope/rope_type", {"default"}},
      {"rope/type", {"linear", {"rope_type"}}},
      {"rope/rope_theta", {77.0}},
      {"rope/factor", {3}},
      {"rope/low_freq_factor", {2}},
      {"rope/high_freq_factor", {9}},
      {"rope/original_max_position_embeddings", {77}},
      {"eos_token_id", {base::Json::array({1, 3})}},
      {"eos_token", {"c"}},
      {"added_tokens_decoder", {{{"1", {{"content", "<NEW>"}}}}}},
      {"additional_special_tokens", {base::Json::array({"<NEW>"})}},
      {"extra_special_tokens", {{{"image_token", "<NEW>"}}}},
      {"add_prefix_space", {true}},
  };
  return all;
}

}  // namespace trireme::tests
