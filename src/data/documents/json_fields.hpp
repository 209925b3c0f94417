// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"

#include <string>

namespace trireme::data {

/// A failure about the content of a tokenizer.json (exit code 6).
base::Failure tokenizer_failure(std::string text);

/// The member, or nothing when it is absent or null.
const base::Json* find_member(const base::Json& json, const std::string& name);
/// "type" of an object, or a description of what stands in its place.
std::string type_of(const base::Json& json);
/// A member that must be true or false when it is there.
base::Result<bool> bool_member(const base::Json& json, const std::string& name, bool otherwise);
/// A member that must be there as text.
base::Result<std::string> text_member(const base::Json& json, const std::string& name);

}  // namespace trireme::data
