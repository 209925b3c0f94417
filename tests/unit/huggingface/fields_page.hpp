// SPDX-License-Identifier: Apache-2.0
// The table of fields as a page.
#pragma once

#include "trireme/base/format.hpp"

#include "huggingface/folder_fields.hpp"

#include <span>
#include <string>
#include <string_view>

namespace trireme::tests {

inline const char* treatment_text(huggingface::Treatment treatment) {
  using huggingface::Treatment;
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

inline void add_rows(std::string& page, std::span<const huggingface::FolderField> fields,
                     huggingface::FieldPlace place) {
  page +=
      "| field | families | treatment | value | what it changes, or why nothing "
      "|\n|---|---|---|---|---|\n";
  for (const auto& field : fields) {
    if (field.place != place) continue;
    const std::string_view value =
        field.treatment == huggingface::Treatment::read && field.value == "null"
            ? std::string_view("none")
            : field.value;
    page += base::format("| `{}` | {} | {} | {} | {} |\n", field.name, field.families,
                         treatment_text(field.treatment), value, field.meaning);
  }
}

inline constexpr const char* fields_introduction =
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

inline constexpr const char* rules_without_table =
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

/// The table as docs/huggingface-fields.md has it.
inline std::string folder_fields_page() {
  using huggingface::FieldPlace;
  std::string page = fields_introduction;
  add_rows(page, huggingface::config_fields(), FieldPlace::config);
  page += "\nOlder files hold fields of generation_config.json here; they are treated as there.\n";
  page += "\n## rope_parameters and rope_scaling in config.json\n";
  add_rows(page, huggingface::config_fields(), FieldPlace::rope);
  page += R"(
## generation_config.json
Warnings are those of `trireme generate`.

)";
  add_rows(page, huggingface::generation_fields(), FieldPlace::generation);
  page += R"(
## tokenizer_config.json
Warnings are those of `trireme data prepare` and `trireme generate`. special_tokens_map.json stands in
for it, as in transformers, where it has no `added_tokens_decoder`.

)";
  add_rows(page, huggingface::tokenizer_fields(), FieldPlace::tokenizer);
  page += rules_without_table;
  return page;
}

}  // namespace trireme::tests
