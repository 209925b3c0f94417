// SPDX-License-Identifier: Apache-2.0
// Hugging Face's config.json, read and written.
#include "trireme/huggingface/config.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/model/model_check.hpp"
#include "trireme/model/model_fields.hpp"

#include "rope_fields.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

namespace trireme::huggingface {
namespace {

using base::Json;
using model::ConfigFields;
using model::ModelConfig;
using model::RopeScalingKind;

void read_gpt2(FieldReader& reader, ModelConfig& model) {
  // Null in one name is that in the other, too: transformers maps them to one setting.
  for (const auto* name : {"n_embd", "hidden_size", "n_layer", "num_hidden_layers", "n_head",
                           "num_attention_heads", "n_positions", "max_position_embeddings"}) {
    reader.refuse_null(name);
  }
  const char* width = reader.either("n_embd", "hidden_size");
  const char* heads = reader.either("n_head", "num_attention_heads");
  model.hidden_size = reader.size(width);
  model.num_hidden_layers = reader.count(reader.either("n_layer", "num_hidden_layers"));
  model.num_attention_heads = reader.count(heads);
  model.max_position_embeddings =
      reader.size(reader.either("n_positions", "max_position_embeddings"));
  reader.either("n_positions", "n_ctx");
  model.vocab_size = reader.size("vocab_size");
  model.intermediate_size = reader.size("n_inner", 4 * model.hidden_size);
  model.norm_eps = static_cast<float>(reader.real("layer_norm_epsilon"));
  model.tie_word_embeddings = reader.flag("tie_word_embeddings");
  const double dropout = reader.real("resid_pdrop");
  if (dropout >= 1.0) {
    reader.refuse(base::format("resid_pdrop = {} is out of range; use 0 to below 1", dropout));
  }
  model.dropout = static_cast<float>(dropout);
  if (reader.real("embd_pdrop") != dropout || reader.real("attn_pdrop") != dropout) {
    reader.refuse("embd_pdrop, attn_pdrop and resid_pdrop differ (there is one model.dropout)");
  }
  model.num_key_value_heads = model.num_attention_heads;
  if (model.hidden_size % model.num_attention_heads != 0) {
    reader.refuse(base::format("{} = {} is not a multiple of {} = {} (heads take equal parts)",
                               width, model.hidden_size, heads, model.num_attention_heads));
  }
  model.head_dim = model.hidden_size / model.num_attention_heads;
}

void check_layer_types(FieldReader& reader, const ModelConfig& model) {
  if (!reader.has("layer_types")) return;
  const auto& types = reader.json()["layer_types"];
  const bool full = types.is_array() &&
                    types.size() == static_cast<std::size_t>(model.num_hidden_layers) &&
                    std::all_of(types.begin(), types.end(),
                                [](const Json& type) { return type == "full_attention"; });
  if (full) return;
  reader.refuse(
      base::format("layer_types is not {} times full_attention, for each of "
                   "num_hidden_layers (no other kind is supported)",
                   model.num_hidden_layers));
}

void read_llama(FieldReader& reader, ModelConfig& model, std::vector<std::string>& warnings) {
  model.hidden_size = reader.size("hidden_size");
  model.intermediate_size = reader.size("intermediate_size");
  model.num_hidden_layers = reader.count("num_hidden_layers");
  model.num_attention_heads = reader.count("num_attention_heads");
  const bool as_many_keys =
      reader.json().contains("num_key_value_heads") && !reader.has("num_key_value_heads");
  model.num_key_value_heads = as_many_keys
                                  ? model.num_attention_heads
                                  : reader.count("num_key_value_heads", model.num_attention_heads);
  model.vocab_size = reader.size("vocab_size");
  model.max_position_embeddings = reader.size("max_position_embeddings");
  model.norm_eps = static_cast<float>(reader.real("rms_norm_eps"));
  model.tie_word_embeddings = reader.flag("tie_word_embeddings");
  model.dropout = 0.0F;
  model.head_dim = reader.size("head_dim");
  if (model.head_dim == 0) {
    if (model.hidden_size % model.num_attention_heads != 0) {
      reader.refuse(
          base::format("hidden_size = {} is not a multiple of num_attention_heads = {} "
                       "(heads take equal parts unless head_dim says otherwise); give "
                       "head_dim",
                       model.hidden_size, model.num_attention_heads));
    }
    model.head_dim = model.hidden_size / model.num_attention_heads;
  }
  check_layer_types(reader, model);
  read_rope(reader, model, warnings);
}

/// True for a class of any family without the head of its model of language.
bool is_base_class(const Json& name) {
  const auto families = model::families();
  return std::any_of(families.begin(), families.end(), [&](const model::Family* family) {
    const auto bases = family->stored.base_classes;
    return std::find(bases.begin(), bases.end(), name) != bases.end();
  });
}

/// Folders of classes with other heads are read for their model of language, as transformers does.
void check_class(const FieldReader& reader, std::string_view model_class,
                 std::vector<std::string>& warnings) {
  if (!reader.has("architectures")) return;
  const auto& classes = reader.json()["architectures"];
  for (const auto& each : classes) {
    if (each == model_class || is_base_class(each)) return;
  }
  if (classes.empty()) return;
  warnings.push_back(
      base::format("{}: architectures = {} is read as {}, and what else the class has "
                   "is not",
                   reader.where(), base::json_text(classes), model_class));
}

/// Floats as people wrote them: 1e-05, not 9.999999747378752e-06.
double decimal(float value) {
  return std::stod(base::number_text(value));
}

}  // namespace

base::Result<ModelConfig> parse_config(const Json& json, std::string_view where,
                                       std::vector<std::string>* said) {
  if (!json.is_object()) return base::usage_failure(base::format("{} is not an object", where));
  const auto type = json.value("model_type", Json());
  const auto family = model::architecture(type.is_string() ? type.get<std::string>() : "");
  if (!family) {
    return base::usage_failure(base::format(
        "{}: model_type = '{}' is not built in; use {}", where,
        type.is_string() ? type.get<std::string>() : base::json_text(type), model::family_names()));
  }
  FieldReader reader(json, FieldPlace::config, *family, std::string(where));
  std::vector<std::string> warnings;
  reader.check(warnings);
  ModelConfig model;
  model.architecture = *family;
  const auto& form = model.family().stored;
  check_class(reader, form.model_class, warnings);
  switch (form.config) {
    case ConfigFields::gpt2:
      read_gpt2(reader, model);
      break;
    case ConfigFields::llama:
      read_llama(reader, model, warnings);
      break;
  }
  model.initializer_range = static_cast<float>(reader.real("initializer_range"));
  if (!reader.status().ok()) return reader.status().failure();
  if (auto status = model::check(model, base::format("{}: ", where)); !status.ok()) {
    return status.failure();
  }
  if (said != nullptr) *said = std::move(warnings);
  return model;
}

Json config_json(const ModelConfig& config) {
  Json json;
  const auto& form = config.family().stored;
  json["architectures"] = {form.model_class};
  json["model_type"] = model::name(config.architecture);
  json["vocab_size"] = config.vocab_size;
  json["initializer_range"] = decimal(config.initializer_range);
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["torch_dtype"] = "float32";
  json["dtype"] = "float32";
  if (form.config == ConfigFields::gpt2) {
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
  // vocab_size keeps its place above.
  model::for_each_size([&](const char* name, auto, auto member) { json[name] = config.*member; });
  json["rms_norm_eps"] = decimal(config.norm_eps);
  json["hidden_act"] = "silu";
  json["attention_bias"] = false;
  json[std::string(form.switched_off)] = false;
  // transformers 4 reads the first two, transformers 5 the third; each ignores the other.
  json["rope_theta"] = config.rope_theta;
  const auto rope = rope_json(config);
  json["rope_scaling"] = config.rope_scaling.kind == RopeScalingKind::none ? Json(nullptr) : rope;
  json["rope_parameters"] = rope;
  return json;
}

namespace {

/// Says each text once in a process: a command may read a folder several times.
void say_once(const std::vector<std::string>& texts) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  for (const auto& text : texts) {
    if (said.insert(text).second) base::log::warning("huggingface", "{}", text);
  }
}

}  // namespace

base::Result<ModelConfig> read_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  auto json = base::read_json_file(path);
  if (!json) return json.failure();
  std::vector<std::string> warnings;
  auto model = parse_config(*json, path.string(), &warnings);
  if (model) say_once(warnings);
  return model;
}

base::Result<ModelConfig> configured_model(const config::Config& config, std::int64_t vocabulary) {
  const auto& folder = config.options().model.from;
  if (folder.empty()) return model::from_config(config, std::nullopt, vocabulary);
  if (!base::exists(std::filesystem::path(folder) / "config.json")) {
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
