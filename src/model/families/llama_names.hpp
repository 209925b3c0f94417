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

}  // namespace trireme::model
