// SPDX-License-Identifier: Apache-2.0
#include "folder_fields.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::huggingface {
namespace {

using base::Json;

bool belongs_to(const FolderField& field, std::string_view family) {
  const auto families = base::split(field.families, ' ');
  return field.families == "all" ||
         std::find(families.begin(), families.end(), family) != families.end();
}

std::span<const FolderField> fields_of(FieldPlace place) {
  switch (place) {
    case FieldPlace::config:
    case FieldPlace::rope:
      return config_fields();
    case FieldPlace::generation:
      return generation_fields();
    case FieldPlace::tokenizer:
      return tokenizer_fields();
  }
  return {};
}

/// A value as errors show it: cut, so that a long list leaves the rest legible.
std::string shown(const Json& value) {
  std::size_t most = 60;
  auto text = base::json_text(value);
  if (text.size() <= most) return text;
  // No character is halved.
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0U) == 0x80U) --most;
  return text.substr(0, most) + "...";
}

/// "silu or swish"
std::string shown_choices(const Json& taken) {
  std::vector<std::string> texts;
  for (const auto& each : taken) {
    if (each.is_null() && taken.size() > 1) continue;
    texts.push_back(each.is_string() ? each.get<std::string>() : base::json_text(each));
  }
  return base::format("{}", base::join(texts, " or "));
}

/// Fields of generation were settings of the model once, and older files still hold them there.
const FolderField* find_anywhere(FieldPlace place, const std::string& name,
                                 model::Architecture family) {
  const auto* field = find_field(place, name, family);
  if (field == nullptr && place == FieldPlace::config) {
    field = find_field(FieldPlace::generation, name, family);
  }
  return field;
}

}  // namespace

std::vector<FolderField> one_name_each(std::span<const FolderField> rows) {
  std::vector<FolderField> fields;
  for (auto field : rows) {
    for (const auto name : base::split(field.name, ' ')) {
      field.name = name;
      fields.push_back(field);
    }
  }
  return fields;
}

const FolderField* find_field(FieldPlace place, std::string_view name, model::Architecture family) {
  for (const auto& field : fields_of(place)) {
    if (field.place == place && field.name == name && belongs_to(field, model::name(family))) {
      return &field;
    }
  }
  return nullptr;
}

base::Status check_fields(const Json& object, FieldPlace place, model::Architecture family,
                          std::string_view where, std::vector<std::string>& warnings) {
  std::vector<std::string> without_effect;
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object.items()) {
    const auto* field = find_anywhere(place, name, family);
    if (field == nullptr) {
      unknown.push_back(base::format("{} = {}", name, shown(value)));
      continue;
    }
    if (field->treatment != Treatment::refused && field->treatment != Treatment::warned) continue;
    const auto taken = Json::parse(field->value);
    if (std::find(taken.begin(), taken.end(), value) != taken.end()) continue;
    if (field->treatment == Treatment::refused) {
      return base::usage_failure(base::format("{}: {} = {} is not supported ({}); {} is", where,
                                              name, shown(value), field->meaning,
                                              shown_choices(taken)));
    }
    without_effect.push_back(base::format("{} = {} ({})", name, shown(value), field->meaning));
  }
  if (!without_effect.empty()) {
    warnings.push_back(
        base::format("{}: no effect has {}", where, base::join(without_effect, ", ")));
  }
  if (!unknown.empty()) {
    warnings.push_back(base::format("{}: fields that are not known here, and have no effect: {}",
                                    where, base::join(unknown, ", ")));
  }
  return {};
}

}  // namespace trireme::huggingface
