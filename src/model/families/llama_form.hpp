// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/family.hpp"

namespace trireme::model {

/// Names of a layer's parameters in Llama's files, which other families have taken over.
inline constexpr StoredName llama_layer[] = {
    {"attention_norm.", "input_layernorm."},
    {"attention.q.", "self_attn.q_proj."},
    {"attention.k.", "self_attn.k_proj."},
    {"attention.v.", "self_attn.v_proj."},
    {"attention.q_norm.", "self_attn.q_norm."},
    {"attention.k_norm.", "self_attn.k_norm."},
    {"attention.output.", "self_attn.o_proj."},
    {"mlp_norm.", "post_attention_layernorm."},
    {"mlp.gate.", "mlp.gate_proj."},
    {"mlp.up.", "mlp.up_proj."},
    {"mlp.down.", "mlp.down_proj."},
};

/// Llama's files, as those of a class that other families have made of them.
constexpr StoredForm llama_form(std::string_view model_class,
                                std::span<const std::string_view> base_classes,
                                std::string_view switched_off) {
  return {.model_class = model_class,
          .base_classes = base_classes,
          .switched_off = switched_off,
          .embedding = "model.embed_tokens.weight",
          .positions = "",
          .final_norm = "model.norm",
          .layers = "model.layers.",
          .layer = llama_layer};
}

}  // namespace trireme::model
