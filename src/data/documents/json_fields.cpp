// SPDX-License-Identifier: Apache-2.0
#include "data/documents/json_fields.hpp"

#include "trireme/base/format.hpp"

namespace trireme::data {

using base::format;
using base::Json;

base::Failure tokenizer_failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

const Json* find_member(const Json& json, const std::string& name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

std::string type_of(const Json& json) {
  const auto* type = find_member(json, "type");
  if (type != nullptr && type->is_string()) return type->get<std::string>();
  return json.is_object() ? "an object without type" : json.type_name();
}

base::Result<bool> bool_member(const Json& json, const std::string& name, bool otherwise) {
  const auto* member = find_member(json, name);
  if (member == nullptr) return otherwise;
  if (!member->is_boolean()) {
    return tokenizer_failure(
        format("'{}' is {}, expected true or false", name, member->type_name()));
  }
  return member->get<bool>();
}

base::Result<std::string> text_member(const Json& json, const std::string& name) {
  const auto* member = find_member(json, name);
  if (member == nullptr || !member->is_string()) {
    return tokenizer_failure(format("'{}' is {}, expected text", name,
                                    member == nullptr ? "absent" : member->type_name()));
  }
  return member->get<std::string>();
}

}  // namespace trireme::data
