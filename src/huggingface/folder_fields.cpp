// SPDX-License-Identifier: Apache-2.0
#include "folder_fields.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include <algorithm>

namespace trireme::huggingface {
namespace {

using base::Json;

bool belongs_to(const FolderField& field, std::string_view family) {
  if (field.families == "all") return true;
  for (auto rest = field.families; !rest.empty();) {
    const auto blank = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, blank) == family) return true;
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  return false;
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

namespace {

const char* text(Treatment treatment) {
  switch (treatment) {
    case Treatment::read:
      return "read";
    case Treatment::checked:
      return "checked";
    case Treatment::refused:
      return "refused, unless";
    case Treatment::warned:
      return "warned of, unless";
    case Treatment::ignored:
      return "ignored";
  }
  return "";
}

void add_rows(std::string& page, FieldPlace place) {
  page +=
      "| field | families | treatment | value | what it changes, or why nothing "
      "|\n|---|---|---|---|---|\n";
  for (const auto& field : fields_of(place)) {
    if (field.place != place) continue;
    const std::string_view value = field.treatment == Treatment::read && field.value == "null"
                                       ? std::string_view("none")
                                       : field.value;
    page += base::format("| `{}` | {} | {} | {} | {} |\n", field.name, field.families,
                         text(field.treatment), value, field.meaning);
  }
}

constexpr const char* introduction =
    R"(<!-- Generated from the table in src/huggingface; a test fails when the two differ. -->
# Fields of Hugging Face folders

What Trireme does with each field of a folder of Hugging Face: of config.json, generation_config.json
and tokenizer_config.json. The reader walks this table, so that a setting which changes numbers is
computed, or refused by name, or said to have no effect; none is passed over in silence. A field that
is not in the table is named in a warning.

- *read*: used. The column *value* says what an absent field means (transformers 5.24's default).
  `null` is absent where transformers takes it so, else an error. 0 is a value like another.
- *checked*: compared with other fields or files.
- *refused, unless*: an error that names file, key and value, unless the value is one of those listed.
- *warned of, unless*: named in a warning and without effect.
- *ignored*: changes no number here.

The same setting in two places (two names of a field, `rope_theta` inside and outside, `rope_scaling`
beside `rope_parameters`) must say the same, because readers differ in the one that they choose;
otherwise it is refused. Numbers of a scaling that its kind does not know (`factor` with `rope_type`
default) are named in a warning; without `rope_type` they are refused.

## config.json
)";

constexpr const char* rules_without_table =
    R"(
## Weights
- model.safetensors is read where model.safetensors.index.json stands beside it, as in transformers; a
  warning says so. An adapter (adapter_config.json) is not applied; a warning says so.
- Tensors that the model does not need are named in a warning, whatever their type (F8_E8M0, F4,
  C64 ...); of those that it needs, F32, F16 and BF16 are read.
- With `tie_word_embeddings`, an `lm_head.weight` beside the embedding must equal it: another one is an
  error (transformers would not tie the two).
- A tensor under two names (with and without `model.` or `transformer.`) is an error.

## End of text
The first of generation_config.json (`eos_token_id`), config.json (`eos_token_id`) and
tokenizer_config.json (`eos_token`) that declares one decides. Its first token ends documents in
`trireme data prepare`; `trireme generate` stops at each of them. Where none declares any, special
tokens go by their usual names; an ordinary entry of the vocabulary never does. An absent
`eos_token_id` declares none, also where a class of transformers supposes one (2 of llama, 50256 of
gpt2): the tokenizer may have any token there.
)";

}  // namespace

std::string folder_fields_page() {
  std::string page = introduction;
  add_rows(page, FieldPlace::config);
  page += "\nOlder files hold fields of generation_config.json here; they are treated as there.\n";
  page += "\n## rope_parameters and rope_scaling in config.json\n";
  add_rows(page, FieldPlace::rope);
  page += R"(
## generation_config.json
Warnings are those of `trireme generate`.

)";
  add_rows(page, FieldPlace::generation);
  page += R"(
## tokenizer_config.json
Warnings are those of `trireme data prepare` and `trireme generate`. special_tokens_map.json stands in
for it, as in transformers, where it has no `added_tokens_decoder`.

)";
  add_rows(page, FieldPlace::tokenizer);
  page += rules_without_table;
  return page;
}

}  // namespace trireme::huggingface
