// SPDX-License-Identifier: Apache-2.0
// The names and shapes of Hugging Face's tensors.
#include "trireme/huggingface/stored_tensor.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <string_view>
#include <utility>

namespace trireme::huggingface {
namespace {

using model::Architecture;
using model::ModelConfig;
using model::Parameter;
using model::Place;

struct Suffix {
  std::string_view ours;
  std::string_view theirs;
};

/// "attention.q.weight" to "self_attn.q_proj.weight".
std::string llama_layer_name(std::string_view ours) {
  static constexpr Suffix names[] = {
      {"attention_norm.weight", "input_layernorm.weight"},
      {"attention.q.weight", "self_attn.q_proj.weight"},
      {"attention.k.weight", "self_attn.k_proj.weight"},
      {"attention.v.weight", "self_attn.v_proj.weight"},
      {"attention.q_norm.weight", "self_attn.q_norm.weight"},
      {"attention.k_norm.weight", "self_attn.k_norm.weight"},
      {"attention.output.weight", "self_attn.o_proj.weight"},
      {"mlp_norm.weight", "post_attention_layernorm.weight"},
      {"mlp.gate.weight", "mlp.gate_proj.weight"},
      {"mlp.up.weight", "mlp.up_proj.weight"},
      {"mlp.down.weight", "mlp.down_proj.weight"},
  };
  for (const auto& [mine, theirs] : names) {
    if (mine == ours) return std::string(theirs);
  }
  TRIREME_ENSURE(false, "parameter without a Hugging Face name: " + std::string(ours));
  return {};
}

std::string gpt2_layer_name(std::string_view ours) {
  static constexpr Suffix names[] = {
      {"attention_norm.", "ln_1."},     {"attention.output.", "attn.c_proj."},
      {"attention.q.", "attn.c_attn."}, {"attention.k.", "attn.c_attn."},
      {"attention.v.", "attn.c_attn."}, {"mlp_norm.", "ln_2."},
      {"mlp.up.", "mlp.c_fc."},         {"mlp.down.", "mlp.c_proj."},
  };
  for (const auto& [mine, theirs] : names) {
    if (ours.starts_with(mine)) return std::string(theirs).append(ours.substr(mine.size()));
  }
  TRIREME_ENSURE(false, "parameter without a Hugging Face name: " + std::string(ours));
  return {};
}

StoredTensor gpt2_tensor(const ModelConfig& config, const Parameter& parameter) {
  StoredTensor tensor;
  const auto& ours = parameter.tensor;
  tensor.shape = ours.shape;
  if (ours.name == "embedding.weight") {
    tensor.name = "transformer.wte.weight";
  } else if (ours.name == "positions.weight") {
    tensor.name = "transformer.wpe.weight";
  } else if (ours.name == "head.weight") {
    tensor.name = "lm_head.weight";
  } else if (parameter.place.kind == Place::Kind::head) {
    tensor.name = "transformer.ln_f" + ours.name.substr(ours.name.rfind('.'));
  } else {
    const auto prefix = base::format("layers.{}.", parameter.place.layer);
    const auto suffix = std::string_view(ours.name).substr(prefix.size());
    tensor.name =
        base::format("transformer.h.{}.{}", parameter.place.layer, gpt2_layer_name(suffix));
    const bool fused = tensor.name.find("c_attn") != std::string::npos;
    if (fused) {
      tensor.first_row = (suffix[10] == 'q' ? 0 : suffix[10] == 'k' ? 1 : 2) * config.hidden_size;
      tensor.shape[0] = 3 * config.hidden_size;
    }
    if (ours.shape.size() == 2) {
      tensor.transposed = true;
      std::swap(tensor.shape[0], tensor.shape[1]);
    }
  }
  return tensor;
}

}  // namespace

StoredTensor stored_tensor(const ModelConfig& config, const Parameter& parameter) {
  if (config.architecture == Architecture::gpt2) return gpt2_tensor(config, parameter);
  StoredTensor tensor;
  tensor.shape = parameter.tensor.shape;
  const auto& ours = parameter.tensor.name;
  if (ours == "embedding.weight") {
    tensor.name = "model.embed_tokens.weight";
  } else if (ours == "head.weight") {
    tensor.name = "lm_head.weight";
  } else if (ours == "final_norm.weight") {
    tensor.name = "model.norm.weight";
  } else {
    const auto prefix = base::format("layers.{}.", parameter.place.layer);
    tensor.name =
        "model." + prefix + llama_layer_name(std::string_view(ours).substr(prefix.size()));
  }
  return tensor;
}

}  // namespace trireme::huggingface
