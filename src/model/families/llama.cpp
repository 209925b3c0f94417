// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024).
#include "model/families/llama_names.hpp"
#include "model/families/rows.hpp"

namespace trireme::model {
namespace {

constexpr std::string_view llama_base_classes[] = {"LlamaModel"};

}  // namespace

const Family llama_family{.architecture = Architecture::llama,
                          .name = "llama",
                          .stored = {.model_class = "LlamaForCausalLM",
                                     .base_classes = llama_base_classes,
                                     .switched_off = "mlp_bias",
                                     .embedding = "model.embed_tokens.weight",
                                     .positions = "",
                                     .final_norm = "model.norm",
                                     .layers = "model.layers.",
                                     .layer = llama_layer}};

}  // namespace trireme::model
