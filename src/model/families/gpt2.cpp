// SPDX-License-Identifier: Apache-2.0
// GPT-2 (Radford et al. 2019).
#include "model/families/rows.hpp"

namespace trireme::model {
namespace {

constexpr std::string_view gpt2_base_classes[] = {"GPT2Model", "GPT2DoubleHeadsModel"};

constexpr StoredName gpt2_layer[] = {
    {"attention_norm.", "ln_1."},
    {"attention.q.", "attn.c_attn.", 0, 3},
    {"attention.k.", "attn.c_attn.", 1, 3},
    {"attention.v.", "attn.c_attn.", 2, 3},
    {"attention.output.", "attn.c_proj."},
    {"mlp_norm.", "ln_2."},
    {"mlp.up.", "mlp.c_fc."},
    {"mlp.down.", "mlp.c_proj."},
};

}  // namespace

constinit const Family gpt2_family{.architecture = Architecture::gpt2,
                                   .name = "gpt2",
                                   .norm = NormKind::layer,
                                   .positions = PositionKind::learned,
                                   .bias = true,
                                   .gated_mlp = false,
                                   .free_heads = false,
                                   .ties_embeddings = true,
                                   .mlp_ratio = 4,
                                   .stored = {.model_class = "GPT2LMHeadModel",
                                              .base_classes = gpt2_base_classes,
                                              .config = ConfigFields::gpt2,
                                              .switched_off = "",
                                              .embedding = "transformer.wte.weight",
                                              .positions = "transformer.wpe.weight",
                                              .final_norm = "transformer.ln_f",
                                              .layers = "transformer.h.",
                                              .layer = gpt2_layer,
                                              .transposed = true}};

}  // namespace trireme::model
