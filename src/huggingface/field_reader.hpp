// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "folder_fields.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::huggingface {

/// Reader of one object by the table of fields, that keeps the first error. An absent field has the
/// table's value; null is as absent only where that follows from other fields.
class FieldReader {
 public:
  /// `where` begins every error: "DIR/config.json".
  FieldReader(const base::Json& json, FieldPlace place, model::Architecture family,
              std::string where);

  const base::Status& status() const { return status_; }
  const std::string& where() const { return where_; }
  /// Keeps "WHERE: text", unless there is an error already.
  void refuse(const std::string& text);
  void refuse(const base::Status& status);
  /// Adds what check_fields() warns of.
  void check(std::vector<std::string>& warnings);

  /// True where the field is there and not null.
  bool has(const char* name) const;
  const base::Json& json() const { return json_; }
  /// An error where the field is null, which transformers would compute with.
  void refuse_null(const char* name);

  /// Whole number from 1 to 2^28; `otherwise` for an absent field whose value is not in the table.
  std::int64_t size(const char* name, std::int64_t otherwise = 0);
  int count(const char* name, int otherwise = 0);
  /// Finite number; at least 0.
  double real(const char* name, double otherwise = 0.0);
  bool flag(const char* name);
  std::string text(const char* name);
  /// Name of the two that is given; an error where both are, and differ.
  const char* either(const char* name, const char* other);

 private:
  /// The value, else the table's; null where that is in words.
  base::Json value(const char* name);

  const base::Json& json_;
  FieldPlace place_;
  model::Architecture family_;
  std::string where_;
  base::Status status_;
};

}  // namespace trireme::huggingface
