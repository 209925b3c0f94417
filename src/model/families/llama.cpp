// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024).
#include "model/families/llama_form.hpp"
#include "model/families/rows.hpp"

namespace trireme::model {
namespace {

constexpr std::string_view llama_base_classes[] = {"LlamaModel"};

}  // namespace

constinit const Family llama_family{
    .architecture = Architecture::llama,
    .name = "llama",
    .stored = llama_form("LlamaForCausalLM", llama_base_classes, "mlp_bias")};

}  // namespace trireme::model
