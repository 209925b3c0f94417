// SPDX-License-Identifier: Apache-2.0
// Hugging Face's config.json, read and written.
#include "trireme/huggingface/config.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

namespace trireme::huggingface {
namespace {

using base::Json;
using model::Architecture;
using model::ModelConfig;
using model::RopeScalingKind;

/// Reader of one config.json that keeps the first error.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  const base::Status& status() const { return status_; }

  void refuse(std::string text) {
    if (status_.ok()) status_ = base::usage_failure("config.json: " + std::move(text));
  }
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }

  std::int64_t integer(const char* key, std::int64_t otherwise = 0) {
    if (!has(key)) return otherwise;
    if (!json_[key].is_number_integer()) {
      refuse(base::format("{} = {} is not a whole number", key, base::json_text(json_[key])));
      return otherwise;
    }
    return json_[key].get<std::int64_t>();
  }
  double real(const char* key, double otherwise) {
    if (!has(key)) return otherwise;
    if (!json_[key].is_number()) {
      refuse(base::format("{} = {} is not a number", key, base::json_text(json_[key])));
      return otherwise;
    }
    return json_[key].get<double>();
  }
  bool flag(const char* key, bool otherwise) {
    if (!has(key)) return otherwise;
    if (!json_[key].is_boolean()) {
      refuse(base::format("{} = {} is not true or false", key, base::json_text(json_[key])));
      return otherwise;
    }
    return json_[key].get<bool>();
  }
  std::string text(const char* key, const char* otherwise) {
    if (!has(key)) return otherwise;
    if (!json_[key].is_string()) {
      refuse(base::format("{} = {} is not text", key, base::json_text(json_[key])));
      return otherwise;
    }
    return json_[key].get<std::string>();
  }
  /// Refuses a feature that the layers here do not compute, if it is on.
  void must_be_off(const char* key) {
    if (flag(key, false)) refuse(base::format("{} = true is not supported", key));
  }
  int count(const char* key, int otherwise = 0) {
    const auto value = integer(key, otherwise);
    if (value < 0 || value > (1 << 28)) {
      refuse(base::format("{} = {} is out of range", key, value));
      return otherwise;
    }
    return static_cast<int>(value);
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  base::Status status_;
};

void read_gpt2(Reader& reader, ModelConfig& model) {
  model.hidden_size = reader.integer("n_embd", 768);
  model.num_hidden_layers = reader.count("n_layer", 12);
  model.num_attention_heads = reader.count("n_head", 12);
  model.max_position_embeddings = reader.integer("n_positions", 1024);
  model.vocab_size = reader.integer("vocab_size", 50257);
  model.intermediate_size = reader.integer("n_inner", 4 * model.hidden_size);
  model.norm_eps = static_cast<float>(reader.real("layer_norm_epsilon", 1e-5));
  model.tie_word_embeddings = reader.flag("tie_word_embeddings", true);
  const double dropout = reader.real("resid_pdrop", 0.1);
  model.dropout = static_cast<float>(dropout);
  if (reader.real("embd_pdrop", 0.1) != dropout || reader.real("attn_pdrop", 0.1) != dropout) {
    reader.refuse("embd_pdrop, attn_pdrop and resid_pdrop differ (there is one model.dropout)");
  }
  const auto activation = reader.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    reader.refuse(
        base::format("activation_function = {} is not supported; gelu_new is", activation));
  }
  if (!reader.flag("scale_attn_weights", true)) {
    reader.refuse("scale_attn_weights = false is not supported");
  }
  reader.must_be_off("scale_attn_by_inverse_layer_idx");
  reader.must_be_off("add_cross_attention");
  model.num_key_value_heads = model.num_attention_heads;
  if (model.num_attention_heads > 0) {
    model.head_dim = model.hidden_size / model.num_attention_heads;
  }
}

void read_rope(Reader& outer, ModelConfig& model, const Json& scaling) {
  if (!scaling.is_object()) {
    outer.refuse("rope settings are not an object");
    return;
  }
  Reader reader(scaling);
  const auto kind = reader.text("rope_type", reader.text("type", "default").c_str());
  model.rope_theta = reader.real("rope_theta", model.rope_theta);
  auto& rope = model.rope_scaling;
  rope.factor = reader.real("factor", 1.0);
  if (kind == "linear") {
    rope.kind = RopeScalingKind::linear;
  } else if (kind == "llama3") {
    rope.kind = RopeScalingKind::llama3;
    rope.low_freq_factor = reader.real("low_freq_factor", 1.0);
    rope.high_freq_factor = reader.real("high_freq_factor", 4.0);
    rope.original_max_position_embeddings =
        reader.integer("original_max_position_embeddings", 8192);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      outer.refuse("rope high_freq_factor must exceed low_freq_factor");
    }
  } else if (kind != "default") {
    outer.refuse(
        base::format("rope_type = {} is not supported; default, linear and llama3 are", kind));
  }
  if (rope.factor <= 0.0) outer.refuse("rope factor must be positive");
  if (!reader.status().ok()) outer.refuse(reader.status().failure().text);
}

void read_llama(Reader& reader, ModelConfig& model) {
  const bool qwen3 = model.architecture == Architecture::qwen3;
  model.hidden_size = reader.integer("hidden_size", 4096);
  model.intermediate_size = reader.integer("intermediate_size", qwen3 ? 22016 : 11008);
  model.num_hidden_layers = reader.count("num_hidden_layers", 32);
  model.num_attention_heads = reader.count("num_attention_heads", 32);
  model.num_key_value_heads =
      reader.count("num_key_value_heads", qwen3 ? 32 : model.num_attention_heads);
  model.vocab_size = reader.integer("vocab_size", qwen3 ? 151936 : 32000);
  model.max_position_embeddings = reader.integer("max_position_embeddings", qwen3 ? 32768 : 2048);
  model.norm_eps = static_cast<float>(reader.real("rms_norm_eps", 1e-6));
  model.tie_word_embeddings = reader.flag("tie_word_embeddings", false);
  model.dropout = 0.0F;
  const std::int64_t even =
      model.num_attention_heads > 0 ? model.hidden_size / model.num_attention_heads : 0;
  model.head_dim = reader.integer("head_dim", qwen3 ? 128 : even);
  model.rope_theta = reader.real("rope_theta", 10000.0);
  if (reader.has("rope_scaling")) read_rope(reader, model, reader.json()["rope_scaling"]);
  if (reader.has("rope_parameters")) read_rope(reader, model, reader.json()["rope_parameters"]);
  const auto activation = reader.text("hidden_act", "silu");
  if (activation != "silu") {
    reader.refuse(base::format("hidden_act = {} is not supported; silu is", activation));
  }
  if (reader.real("attention_dropout", 0.0) != 0.0) {
    reader.refuse("attention_dropout is not supported for this family");
  }
  if (reader.real("partial_rotary_factor", 1.0) != 1.0) {
    reader.refuse("partial_rotary_factor is not supported");
  }
  reader.must_be_off("attention_bias");
  reader.must_be_off("mlp_bias");
  reader.must_be_off("use_sliding_window");
}

Json rope_json(const ModelConfig& config) {
  const auto& rope = config.rope_scaling;
  Json json;
  json["rope_type"] = rope.kind == RopeScalingKind::llama3   ? "llama3"
                      : rope.kind == RopeScalingKind::linear ? "linear"
                                                             : "default";
  json["rope_theta"] = config.rope_theta;
  if (rope.kind != RopeScalingKind::none) json["factor"] = rope.factor;
  if (rope.kind == RopeScalingKind::llama3) {
    json["low_freq_factor"] = rope.low_freq_factor;
    json["high_freq_factor"] = rope.high_freq_factor;
    json["original_max_position_embeddings"] = rope.original_max_position_embeddings;
  }
  return json;
}

/// Floats as people wrote them: 1e-05, not 9.999999747378752e-06.
double decimal(float value) {
  return std::stod(base::number_text(value));
}

}  // namespace

base::Result<ModelConfig> parse_config(const Json& json) {
  if (!json.is_object()) return base::usage_failure("config.json is not an object");
  Reader reader(json);
  const auto type = reader.text("model_type", "");
  auto family = model::architecture(type);
  if (!family) {
    return base::usage_failure(base::format(
        "config.json: model_type = '{}' is not built in; use gpt2, llama or qwen3", type));
  }
  ModelConfig model;
  model.architecture = *family;
  if (model.architecture == Architecture::gpt2) {
    read_gpt2(reader, model);
  } else {
    read_llama(reader, model);
  }
  model.initializer_range = static_cast<float>(reader.real("initializer_range", 0.02));
  if (!reader.status().ok()) return reader.status().failure();
  if (auto status = model::check(model); !status.ok()) return status.failure();
  return model;
}

Json config_json(const ModelConfig& config) {
  Json json;
  const bool gpt2 = config.architecture == Architecture::gpt2;
  json["architectures"] = {gpt2                                         ? "GPT2LMHeadModel"
                           : config.architecture == Architecture::llama ? "LlamaForCausalLM"
                                                                        : "Qwen3ForCausalLM"};
  json["model_type"] = model::name(config.architecture);
  json["vocab_size"] = config.vocab_size;
  json["initializer_range"] = decimal(config.initializer_range);
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["torch_dtype"] = "float32";
  json["dtype"] = "float32";
  if (gpt2) {
    json["n_embd"] = config.hidden_size;
    json["n_layer"] = config.num_hidden_layers;
    json["n_head"] = config.num_attention_heads;
    json["n_positions"] = config.max_position_embeddings;
    json["n_ctx"] = config.max_position_embeddings;
    json["n_inner"] = config.intermediate_size;
    json["activation_function"] = "gelu_new";
    json["layer_norm_epsilon"] = decimal(config.norm_eps);
    for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
      json[key] = decimal(config.dropout);
    }
    return json;
  }
  json["hidden_size"] = config.hidden_size;
  json["intermediate_size"] = config.intermediate_size;
  json["num_hidden_layers"] = config.num_hidden_layers;
  json["num_attention_heads"] = config.num_attention_heads;
  json["num_key_value_heads"] = config.num_key_value_heads;
  json["head_dim"] = config.head_dim;
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["rms_norm_eps"] = decimal(config.norm_eps);
  json["hidden_act"] = "silu";
  json["attention_bias"] = false;
  if (config.architecture == Architecture::llama) json["mlp_bias"] = false;
  if (config.architecture == Architecture::qwen3) json["use_sliding_window"] = false;
  // transformers 4 reads the first two, transformers 5 the third; each ignores the other.
  json["rope_theta"] = config.rope_theta;
  const auto rope = rope_json(config);
  json["rope_scaling"] = config.rope_scaling.kind == RopeScalingKind::none ? Json(nullptr) : rope;
  json["rope_parameters"] = rope;
  return json;
}

base::Result<ModelConfig> read_config(const std::filesystem::path& folder) {
  auto json = base::read_json_file(folder / "config.json");
  if (!json) return json.failure();
  auto model = parse_config(*json);
  if (!model) {
    return base::usage_failure(base::format("{}/{}", folder.string(), model.failure().text));
  }
  return model;
}

base::Result<ModelConfig> configured_model(const config::Config& config, std::int64_t vocabulary) {
  const auto& folder = config.options().model.from;
  if (folder.empty()) return model::from_config(config, std::nullopt, vocabulary);
  if (!std::filesystem::exists(std::filesystem::path(folder) / "config.json")) {
    return base::usage_failure(
        base::format("{}: there is no '{}/config.json' (it says what the model is); name a "
                     "Hugging Face folder",
                     config.cited("model.from"), folder));
  }
  const auto from = read_config(folder);
  if (!from) return from.failure();
  return model::from_config(config, *from, vocabulary);
}

}  // namespace trireme::huggingface
