// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/schema.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Text of values in errors.
namespace trireme::schema {

/// 'a b' for texts that a reader could misread in a sentence; at most 80 bytes.
std::string quoted_if_odd(std::string_view text);

/// First clause of the documentation: "tokens of one training sequence".
std::string purpose(const Key& key);

struct TextProblem {
  std::string problem;
  std::string fix;
};
/// Why a text cannot be a value: it is too long, or would be more than one line.
std::optional<TextProblem> unfit_text(std::string_view text);

}  // namespace trireme::schema
