#include "trireme/model/parameters.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <cmath>

namespace trireme::model {
namespace {

using layout::Axis;
using layout::Cut;

/// Collects the list; knows the defaults that most parameters share.
class ListBuilder {
 public:
  explicit ListBuilder(const ModelConfig& config) : config_(config) {}

  Parameter& matrix(const std::string& name, Place place, layout::Shape shape,
                    std::vector<Cut> cuts) {
    Parameter parameter;
    parameter.tensor = {name, std::move(shape), std::move(cuts)};
    parameter.place = place;
    parameter.deviation = config_.initializer_range;
    parameter.fused_name = name;
    list_.push_back(std::move(parameter));
    return list_.back();
  }

  Parameter& vector(const std::string& name, Place place, std::int64_t length,
                    Initialisation initialisation, std::vector<Cut> cuts = {}) {
    auto& parameter = matrix(name, place, {length}, std::move(cuts));
    parameter.initialisation = initialisation;
    parameter.decays = false;
    return parameter;
  }

  void norm(const std::string& name, Place place) {
    vector(name + ".weight", place, config_.hidden_size, Initialisation::ones).gradient =
        TensorGradient::partial_in_sequence;
    if (config_.architecture == Architecture::gpt2) {
      vector(name + ".bias", place, config_.hidden_size, Initialisation::zeros).gradient =
          TensorGradient::partial_in_sequence;
    }
  }

  std::vector<Parameter> take() { return std::move(list_); }

 private:
  const ModelConfig& config_;
  std::vector<Parameter> list_;
};

/// One of q, k, v: rows are heads, so tensor parallelism cuts between heads.
void add_projection(ListBuilder& list, const ModelConfig& config, int layer, const char* letter,
                    int heads) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.attention.", layer);
  const std::vector<Cut> cuts{{Axis::tensor, 0, config.head_dim, heads}};
  const std::int64_t rows = heads * config.head_dim;
  const bool key_or_value = *letter != 'q';
  auto& weight = list.matrix(prefix + letter + ".weight", place, {rows, config.hidden_size}, cuts);
  weight.fused_name = prefix + "qkv.weight";
  if (key_or_value) weight.gradient = TensorGradient::partial_in_replicas;
}

void add_projection_bias(ListBuilder& list, const ModelConfig& config, int layer,
                         const char* letter, int heads) {
  const auto prefix = base::format("layers.{}.attention.", layer);
  auto& bias =
      list.vector(prefix + letter + ".bias", {Place::Kind::layer, layer}, heads * config.head_dim,
                  Initialisation::zeros, {{Axis::tensor, 0, config.head_dim, heads}});
  bias.fused_name = prefix + "qkv.bias";
  if (*letter != 'q') bias.gradient = TensorGradient::partial_in_replicas;
}

/// Projections back into the residual stream start smaller, by the number of additions to it
/// (Radford et al. 2019, section 2.3).
float residual_deviation(const ModelConfig& config) {
  return config.initializer_range / std::sqrt(2.0F * static_cast<float>(config.num_hidden_layers));
}

void add_attention(ListBuilder& list, const ModelConfig& config, int layer) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.attention", layer);
  const int heads = config.num_attention_heads;
  const int kv_heads = config.num_key_value_heads;
  list.norm(prefix + "_norm", place);
  add_projection(list, config, layer, "q", heads);
  add_projection(list, config, layer, "k", kv_heads);
  add_projection(list, config, layer, "v", kv_heads);
  if (config.has_bias()) {
    add_projection_bias(list, config, layer, "q", heads);
    add_projection_bias(list, config, layer, "k", kv_heads);
    add_projection_bias(list, config, layer, "v", kv_heads);
  }
  if (config.has_head_norms()) {
    for (const char* which : {".q_norm.weight", ".k_norm.weight"}) {
      list.vector(prefix + which, place, config.head_dim, Initialisation::ones).gradient =
          TensorGradient::partial_in_heads;
    }
  }
  list.matrix(prefix + ".output.weight", place, {config.hidden_size, heads * config.head_dim},
              {{Axis::tensor, 1, config.head_dim, heads}})
      .deviation = residual_deviation(config);
  if (config.has_bias()) {
    list.vector(prefix + ".output.bias", place, config.hidden_size, Initialisation::zeros);
  }
}

void add_mlp(ListBuilder& list, const ModelConfig& config, int layer) {
  const Place place{Place::Kind::layer, layer};
  const auto prefix = base::format("layers.{}.mlp", layer);
  const std::vector<Cut> rows{{Axis::tensor, 0}};
  const layout::Shape wide{config.intermediate_size, config.hidden_size};
  list.norm(prefix + "_norm", place);
  if (config.has_gated_mlp()) {
    list.matrix(prefix + ".gate.weight", place, wide, rows).fused_name = prefix + ".gate_up.weight";
    list.matrix(prefix + ".up.weight", place, wide, rows).fused_name = prefix + ".gate_up.weight";
  } else {
    list.matrix(prefix + ".up.weight", place, wide, rows);
  }
  if (config.has_bias()) {
    list.vector(prefix + ".up.bias", place, config.intermediate_size, Initialisation::zeros, rows);
  }
  list.matrix(prefix + ".down.weight", place, {config.hidden_size, config.intermediate_size},
              {{Axis::tensor, 1}})
      .deviation = residual_deviation(config);
  if (config.has_bias()) {
    list.vector(prefix + ".down.bias", place, config.hidden_size, Initialisation::zeros);
  }
}

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

HuggingFaceTensor gpt2_tensor(const ModelConfig& config, const Parameter& parameter) {
  HuggingFaceTensor tensor;
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

std::vector<Parameter> parameters(const ModelConfig& config) {
  ListBuilder list(config);
  const Place embedding{Place::Kind::embedding, 0};
  const Place head{Place::Kind::head, 0};
  const std::vector<Cut> by_token{{Axis::tensor, 0}};
  const layout::Shape table{config.vocab_size, config.hidden_size};
  list.matrix("embedding.weight", embedding, table, by_token);
  if (!config.has_rotary()) {
    list.matrix("positions.weight", embedding, {config.max_position_embeddings, config.hidden_size},
                {});
  }
  for (int layer = 0; layer < config.num_hidden_layers; ++layer) {
    add_attention(list, config, layer);
    add_mlp(list, config, layer);
  }
  list.norm("final_norm", head);
  if (!config.tie_word_embeddings) list.matrix("head.weight", head, table, by_token);
  return list.take();
}

HuggingFaceTensor huggingface_tensor(const ModelConfig& config, const Parameter& parameter) {
  if (config.architecture == Architecture::gpt2) return gpt2_tensor(config, parameter);
  HuggingFaceTensor tensor;
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

}  // namespace trireme::model
