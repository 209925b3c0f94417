#pragma once

#include "trireme/config/schema.hpp"

#include <optional>
#include <string>
#include <string_view>

/// Text of values and errors. Private to the room.
namespace trireme::config {

std::string_view trimmed(std::string_view text);
std::string lower_case(std::string_view text);

/// Control and broken bytes as \xNN, so that an error about junk can be read.
std::string printable(std::string_view text);

/// 'a b' for texts that a reader could misread in a sentence; at most 80 bytes.
std::string quoted_if_odd(std::string_view text);

/// First clause of the documentation: "tokens of one training sequence".
std::string purpose(const Key& key);

struct TextProblem {
  std::string problem;
  std::string fix;
};
/// Why a text cannot be a value: what it holds could not be written to a file and read back.
std::optional<TextProblem> unfit_text(std::string_view text);

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629).
std::optional<std::size_t> first_broken_utf8(std::string_view text);

}  // namespace trireme::config
