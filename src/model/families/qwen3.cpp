// SPDX-License-Identifier: Apache-2.0
// Qwen3, dense (Yang et al. 2025).
#include "model/families/llama_form.hpp"
#include "model/families/rows.hpp"

namespace trireme::model {
namespace {

constexpr std::string_view qwen3_base_classes[] = {"Qwen3Model"};

}  // namespace

constinit const Family qwen3_family{
    .architecture = Architecture::qwen3,
    .name = "qwen3",
    .head_norms = true,
    .stored = llama_form("Qwen3ForCausalLM", qwen3_base_classes, "use_sliding_window")};

}  // namespace trireme::model
