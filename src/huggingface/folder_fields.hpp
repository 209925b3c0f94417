// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/model/model_config.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::huggingface {

/// Place of a field: a file of a Hugging Face folder, or an object in one.
enum class FieldPlace {
  config,      ///< config.json
  rope,        ///< rope_parameters and rope_scaling in config.json
  generation,  ///< generation_config.json
  tokenizer    ///< tokenizer_config.json
};

/// Treatment of a field.
enum class Treatment {
  read,     ///< its value is used
  checked,  ///< compared with what other fields or files say
  refused,  ///< only the values listed are computed here; others are errors
  warned,   ///< values other than those listed are named in a warning and have no effect
  ignored   ///< changes no number here
};

/// A field that Hugging Face's software reads, and what is done with it here.
struct FolderField {
  FieldPlace place;
  /// In the tables of the files: several, separated by blanks, that are treated alike.
  std::string_view name;
  /// "all", or names of families separated by blanks.
  std::string_view families;
  Treatment treatment;
  /// read: the value where the field is absent, as JSON, or in words where it follows from others.
  /// refused, warned: a JSON list of values that are taken.
  std::string_view value;
  /// Effect of the field; of an ignored one why there is none.
  std::string_view meaning;
};

/// The table: every field that may change numbers, and those of which a reader might believe it.
std::span<const FolderField> config_fields();
std::span<const FolderField> generation_fields();
std::span<const FolderField> tokenizer_fields();

/// Rows of one name each.
std::vector<FolderField> one_name_each(std::span<const FolderField> rows);

/// Row of a field of a family; null where the table has none.
const FolderField* find_field(FieldPlace place, std::string_view name, model::Architecture family);

/// Walks an object: the first field with a value that is refused is a failure that begins with
/// `where`; fields that are warned of, and fields that the table does not have, are added to
/// `warnings` in one text.
base::Status check_fields(const base::Json& object, FieldPlace place, model::Architecture family,
                          std::string_view where, std::vector<std::string>& warnings);

}  // namespace trireme::huggingface
