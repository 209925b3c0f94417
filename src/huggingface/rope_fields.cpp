// SPDX-License-Identifier: Apache-2.0
#include "rope_fields.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/model/model_fields.hpp"

#include <optional>
#include <string_view>

namespace trireme::huggingface {
namespace {

using base::Json;
using model::ModelConfig;
using model::RopeScalingKind;

constexpr const char* theta = "rope_theta";
constexpr const char* original = "original_max_position_embeddings";

/// Base of the frequencies, from inside of the settings or beside them.
double read_theta(FieldReader& outer, FieldReader& inner) {
  inner.refuse_null(theta);
  if (!inner.has(theta)) return outer.real(theta);
  if (outer.has(theta) && outer.json()[theta] != inner.json()[theta]) {
    outer.refuse(base::format(
        "rope_theta = {}, but {} has {} (readers differ in the one that they "
        "take); make them equal, or leave one out",
        base::json_text(outer.json()[theta]), inner.where(), base::json_text(inner.json()[theta])));
  }
  return inner.real(theta);
}

std::int64_t read_original(FieldReader& outer, FieldReader& inner, const ModelConfig& model) {
  inner.refuse_null(original);
  if (!inner.has(original)) return outer.size(original, model.max_position_embeddings);
  if (outer.has(original) && outer.json()[original] != inner.json()[original]) {
    outer.refuse(
        base::format("{} = {}, but {} has {} (readers differ in the one that they take); "
                     "make them equal, or leave one out",
                     original, base::json_text(outer.json()[original]), inner.where(),
                     base::json_text(inner.json()[original])));
  }
  return inner.size(original);
}

/// Positive number that the kind cannot do without.
double needed(FieldReader& reader, const std::string& kind, const char* name) {
  if (!reader.has(name)) {
    reader.refuse(
        base::format("{} is missing (rope_type = {} needs it, and no value is usual); give "
                     "it",
                     name, kind));
    return 1.0;
  }
  const auto number = reader.real(name);
  if (number <= 0.0) reader.refuse(base::format("{} = {} must be positive", name, number));
  return number;
}

/// Numbers of a scaling of which its kind knows nothing: without a kind they are refused, because
/// transformers would compute without the scaling that is meant.
void check_unused(FieldReader& inner, RopeScalingKind kind, std::vector<std::string>& warnings) {
  if (kind == RopeScalingKind::llama3) return;
  const bool has_kind = inner.has("rope_type") || inner.has("type");
  std::vector<std::string> unused;
  for (const auto* name : {"factor", "low_freq_factor", "high_freq_factor", original}) {
    const bool is_used = kind == RopeScalingKind::linear && std::string_view(name) == "factor";
    if (is_used || !inner.has(name)) continue;
    unused.push_back(base::format("{} = {}", name, base::json_text(inner.json()[name])));
  }
  if (unused.empty()) return;
  const auto numbers = base::format("{}", base::join(unused, ", "));
  if (!has_kind) {
    inner.refuse(
        base::format("{} without rope_type (a scaling without its kind is none); give rope_type, "
                     "linear or llama3, or leave the numbers out",
                     numbers));
    return;
  }
  warnings.push_back(base::format("{}: no effect has {} (rope_type = {} does not know it)",
                                  inner.where(), numbers, model::name(kind)));
}

void read_scaling(FieldReader& outer, FieldReader& inner, ModelConfig& model) {
  auto& rope = model.rope_scaling;
  if (!inner.has("rope_type")) inner.refuse_null("type");
  const auto kind = inner.text(inner.either("rope_type", "type"));
  if (kind == "linear") {
    rope.kind = RopeScalingKind::linear;
    rope.factor = needed(inner, kind, "factor");
  } else if (kind == "llama3") {
    rope.kind = RopeScalingKind::llama3;
    rope.factor = needed(inner, kind, "factor");
    rope.low_freq_factor = needed(inner, kind, "low_freq_factor");
    rope.high_freq_factor = needed(inner, kind, "high_freq_factor");
    rope.original_max_position_embeddings = read_original(outer, inner, model);
    if (inner.status().ok() && !config::can_blend(rope.low_freq_factor, rope.high_freq_factor)) {
      inner.refuse(base::format("high_freq_factor = {} must exceed low_freq_factor = {}",
                                rope.high_freq_factor, rope.low_freq_factor));
    }
  } else if (inner.status().ok() && kind != "default") {
    inner.refuse(
        base::format("rope_type = {} is not supported; default, linear and llama3 are", kind));
  }
}

/// The model with the settings of one object; none where there is no such object, or an empty one.
std::optional<ModelConfig> with_settings(FieldReader& outer, const ModelConfig& model,
                                         const char* name, std::vector<std::string>& warnings) {
  if (!outer.has(name)) return std::nullopt;
  const auto& json = outer.json()[name];
  if (!json.is_object()) {
    outer.refuse(base::format("{} = {} is not an object", name, base::json_text(json)));
    return std::nullopt;
  }
  if (json.empty()) return std::nullopt;
  auto changed = model;
  FieldReader inner(json, FieldPlace::rope, model.architecture,
                    base::format("{}: {}", outer.where(), name));
  for (const auto& [key, value] : json.items()) {
    if (!value.is_object()) continue;
    inner.refuse(
        base::format("{} is an object (settings of one kind of layers are not supported); "
                     "give one setting for all",
                     key));
  }
  inner.check(warnings);
  read_scaling(outer, inner, changed);
  check_unused(inner, changed.rope_scaling.kind, warnings);
  changed.rope_theta = read_theta(outer, inner);
  outer.refuse(inner.status());
  return changed;
}

}  // namespace

void read_rope(FieldReader& reader, ModelConfig& model, std::vector<std::string>& warnings) {
  const auto scaling = with_settings(reader, model, "rope_scaling", warnings);
  const auto parameters = with_settings(reader, model, "rope_parameters", warnings);
  if (scaling && parameters && rope_json(*scaling) != rope_json(*parameters)) {
    reader.refuse(base::format(
        "rope_scaling and rope_parameters say different things, {} and {} "
        "(readers differ in the one that they take); make them equal, or "
        "leave one out",
        base::json_text(rope_json(*scaling)), base::json_text(rope_json(*parameters))));
  }
  if (scaling) {
    model = *scaling;
  } else if (parameters) {
    model = *parameters;
  } else {
    model.rope_theta = reader.real(theta);
  }
  if (reader.has(original) && model.rope_scaling.kind != RopeScalingKind::llama3) {
    warnings.push_back(base::format("{}: no effect has {} = {} (of a llama3 scaling, and none is)",
                                    reader.where(), original,
                                    base::json_text(reader.json()[original])));
  }
  if (model.rope_theta <= 0.0)
    reader.refuse(base::format("rope_theta = {} must be positive", model.rope_theta));
}

Json rope_json(const ModelConfig& config) {
  const auto& rope = config.rope_scaling;
  Json json;
  json["rope_type"] = model::name(rope.kind);
  json["rope_theta"] = config.rope_theta;
  model::for_each_rope_number(
      rope.kind, [&](const char* name, auto, auto member) { json[name] = rope.*member; });
  return json;
}

}  // namespace trireme::huggingface
