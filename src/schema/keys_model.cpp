// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr std::string_view from_model =
    "from model.from, else the run's own model; without these the key must be given";

constexpr Rows<&Options::model> model{.concern = Concern::model};

constexpr Key model_rows[] = {
    model.key<&ModelOptions::architecture>(
        "auto", {.auto_rule = from_model},
        "Family of the model. Names of all keys here are those of a Hugging Face config.json."),
    model.key<&ModelOptions::from>(
        "",
        "Folder with a Hugging Face config.json that gives every key left at `auto`. Weights are "
        "not read from it: `checkpoint.load` does that."),
    model.key<&ModelOptions::vocab_size>(
        "auto", {.range = counts_from(1), .auto_rule = "from model.from, else from data.tokenizer"},
        "Entries of the vocabulary."),
    model.key<&ModelOptions::hidden_size>("auto",
                                          {.range = counts_from(1), .auto_rule = from_model},
                                          "Width of the residual stream."),
    model.key<&ModelOptions::intermediate_size>(
        "auto",
        {.range = counts_from(1),
         .auto_rule = "from model.from, else 4 x hidden_size; llama and qwen3 need it given"},
        "Width inside the feed-forward block."),
    model.key<&ModelOptions::num_hidden_layers>(
        "auto", {.range = counts_from(1), .auto_rule = from_model}, "Transformer layers."),
    model.key<&ModelOptions::num_attention_heads>(
        "auto", {.range = counts_from(1), .auto_rule = from_model}, "Query heads of a layer."),
    model.key<&ModelOptions::num_key_value_heads>(
        "auto", {.range = counts_from(1), .auto_rule = "from model.from, else num_attention_heads"},
        "Key and value heads of a layer (fewer than query heads is grouped-query attention). Must "
        "divide num_attention_heads."),
    model.key<&ModelOptions::head_dim>(
        "auto",
        {.range = counts_from(1),
         .auto_rule = "from model.from, else hidden_size / num_attention_heads"},
        "Width of one head."),
    model.key<&ModelOptions::max_position_embeddings>(
        "auto",
        {.unit = "tokens",
         .range = counts_from(1),
         .auto_rule = "from model.from, else train.sequence_length"},
        "Longest context."),
    model.key<&ModelOptions::rope_theta>(
        "auto", {.range = more_than(0), .auto_rule = "from model.from, else 10000"},
        "Base of the rotary frequencies."),
    model.key<&ModelOptions::rope_scaling, &RopeScalingOptions::rope_type>(
        "auto", {.auto_rule = "from model.from, else default"},
        "Scaling of rotary frequencies for contexts longer than the model was first trained with. "
        "`default` is none; `linear` needs a factor; `llama3` needs all four keys below."),
    model.key<&ModelOptions::rope_scaling, &RopeScalingOptions::factor>(
        "auto", {.range = at_least(1), .auto_rule = "from model.from"},
        "How many times longer the context becomes."),
    model.key<&ModelOptions::rope_scaling, &RopeScalingOptions::low_freq_factor>(
        "auto", {.range = more_than(0), .auto_rule = "from model.from"},
        "Wavelengths above original / low_freq_factor are scaled fully."),
    model.key<&ModelOptions::rope_scaling, &RopeScalingOptions::high_freq_factor>(
        "auto", {.range = more_than(0), .auto_rule = "from model.from"},
        "Wavelengths below original / high_freq_factor are left alone; between the two limits the "
        "scaling is blended."),
    model.key<&ModelOptions::rope_scaling, &RopeScalingOptions::original_max_position_embeddings>(
        "auto", {.unit = "tokens", .range = counts_from(1), .auto_rule = "from model.from"},
        "Context for which the rotary frequencies were first chosen."),
    model.key<&ModelOptions::rms_norm_eps>(
        "auto", {.range = more_than(0), .auto_rule = "from model.from, else 1e-5"},
        "Term under the root of RMSNorm (llama, qwen3)."),
    model.key<&ModelOptions::layer_norm_eps>(
        "auto", {.range = more_than(0), .auto_rule = "from model.from, else 1e-5"},
        "Term under the root of LayerNorm (gpt2)."),
    model.key<&ModelOptions::tie_word_embeddings>(
        "auto", {.auto_rule = "from model.from, else true for gpt2 and false for the others"},
        "Whether the output projection is the input embedding."),
    model.key<&ModelOptions::dropout>(
        "auto",
        {.concern = Concern::training,
         .range = from_0_below_1(),
         .auto_rule = "from model.from, else 0"},
        "Probability of dropping a value (gpt2: embedding, attention and residual). The numbers "
        "drawn do not depend on the layout."),
    model.key<&ModelOptions::initializer_range>("auto",
                                                {.concern = Concern::training,
                                                 .range = more_than(0),
                                                 .auto_rule = "from model.from, else 0.02"},
                                                "Standard deviation of initial weights."),
};

}  // namespace

std::span<const Key> model_keys() {
  return model_rows;
}

}  // namespace trireme::schema
