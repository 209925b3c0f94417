// SPDX-License-Identifier: Apache-2.0
#include "keys.hpp"

namespace trireme::schema {
namespace {

constexpr std::string_view from_model =
    "from model.from, else the run's own model; without these the key must be given";

Key size(std::string_view name, std::string_view auto_rule, std::string_view documentation) {
  return {.section = "model",
          .name = name,
          .type = Type::integer,
          .concern = Concern::model,
          .default_text = "auto",
          .range = counts_from(1),
          .auto_rule = auto_rule,
          .documentation = documentation};
}

Key number(std::string_view name, const Range& range, std::string_view auto_rule,
           std::string_view documentation) {
  return {.section = "model",
          .name = name,
          .type = Type::real,
          .concern = Concern::model,
          .default_text = "auto",
          .range = range,
          .auto_rule = auto_rule,
          .documentation = documentation};
}

void add_sizes(std::vector<Key>& keys) {
  keys.push_back(size("vocab_size", "from model.from, else from data.tokenizer",
                      "Entries of the vocabulary."));
  keys.push_back(size("hidden_size", from_model, "Width of the residual stream."));
  keys.push_back(size("intermediate_size",
                      "from model.from, else 4 x hidden_size; llama and qwen3 need it given",
                      "Width inside the feed-forward block."));
  keys.push_back(size("num_hidden_layers", from_model, "Transformer layers."));
  keys.push_back(size("num_attention_heads", from_model, "Query heads of a layer."));
  keys.push_back(size("num_key_value_heads", "from model.from, else num_attention_heads",
                      "Key and value heads of a layer (fewer than query heads is grouped-query "
                      "attention). Must divide num_attention_heads."));
  keys.push_back(size("head_dim", "from model.from, else hidden_size / num_attention_heads",
                      "Width of one head."));
  auto positions = size("max_position_embeddings", "from model.from, else train.sequence_length",
                        "Longest context.");
  positions.unit = "tokens";
  keys.push_back(positions);
}

void add_rope_scaling(std::vector<Key>& keys) {
  keys.push_back({.section = "model",
                  .name = "rope_scaling.rope_type",
                  .type = Type::choice,
                  .concern = Concern::model,
                  .default_text = "auto",
                  .choices = {"default", "linear", "llama3"},
                  .auto_rule = "from model.from, else default",
                  .documentation = "Scaling of rotary frequencies for contexts longer than the "
                                   "model was first trained with. `default` is none; `linear` "
                                   "needs a factor; `llama3` needs all four keys below."});
  keys.push_back(number("rope_scaling.factor", at_least(1), "from model.from",
                        "How many times longer the context becomes."));
  keys.push_back(number("rope_scaling.low_freq_factor", more_than(0), "from model.from",
                        "Wavelengths above original / low_freq_factor are scaled fully."));
  keys.push_back(number("rope_scaling.high_freq_factor", more_than(0), "from model.from",
                        "Wavelengths below original / high_freq_factor are left alone; between "
                        "the two limits the scaling is blended."));
  auto original = size("rope_scaling.original_max_position_embeddings", "from model.from",
                       "Context for which the rotary frequencies were first chosen.");
  original.unit = "tokens";
  keys.push_back(original);
}

}  // namespace

std::vector<Key> model_keys() {
  std::vector<Key> keys;
  keys.push_back({.section = "model",
                  .name = "architecture",
                  .type = Type::choice,
                  .concern = Concern::model,
                  .default_text = "auto",
                  .choices = {"gpt2", "llama", "qwen3"},
                  .auto_rule = from_model,
                  .documentation = "Family of the model. Names of all keys here are those of a "
                                   "Hugging Face config.json."});
  keys.push_back({.section = "model",
                  .name = "from",
                  .concern = Concern::model,
                  .documentation = "Folder with a Hugging Face config.json that gives every key "
                                   "left at `auto`. Weights are not read from it: "
                                   "`checkpoint.load` does that."});
  add_sizes(keys);
  keys.push_back(number("rope_theta", more_than(0), "from model.from, else 10000",
                        "Base of the rotary frequencies."));
  add_rope_scaling(keys);
  keys.push_back(number("rms_norm_eps", more_than(0), "from model.from, else 1e-5",
                        "Term under the root of RMSNorm (llama, qwen3)."));
  keys.push_back(number("layer_norm_eps", more_than(0), "from model.from, else 1e-5",
                        "Term under the root of LayerNorm (gpt2)."));
  keys.push_back({.section = "model",
                  .name = "tie_word_embeddings",
                  .type = Type::flag,
                  .concern = Concern::model,
                  .default_text = "auto",
                  .auto_rule = "from model.from, else true for gpt2 and false for the others",
                  .documentation = "Whether the output projection is the input embedding."});
  // Weights do not depend on these two.
  auto dropout = number("dropout", from_0_below_1(), "from model.from, else 0",
                        "Probability of dropping a value (gpt2: embedding, attention and "
                        "residual). The numbers drawn do not depend on the layout.");
  auto range = number("initializer_range", more_than(0), "from model.from, else 0.02",
                      "Standard deviation of initial weights.");
  for (auto* key : {&dropout, &range}) {
    key->concern = Concern::training;
    keys.push_back(*key);
  }
  return keys;
}

}  // namespace trireme::schema
