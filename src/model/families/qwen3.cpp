// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (Yang et al. 2025).
#include "model/families/llama_names.hpp"
#include "model/families/rows.hpp"

namespace trireme::model {
namespace {

constexpr std::string_view qwen3_base_classes[] = {"Qwen3Model"};

}  // namespace

const Family qwen3_family{.architecture = Architecture::qwen3,
                          .name = "qwen3",
                          .head_norms = true,
                          .stored = {.model_class = "Qwen3ForCausalLM",
                                     .base_classes = qwen3_base_classes,
                                     .switched_off = "use_sliding_window",
                                     .embedding = "model.embed_tokens.weight",
                                     .positions = "",
                                     .final_norm = "model.norm",
                                     .layers = "model.layers.",
                                     .layer = llama_layer}};

}  // namespace trireme::model
