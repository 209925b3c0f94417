// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/text.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Small text, without locales. Private to the room.
namespace trireme::launch {

using base::is_control;
using base::split;
using base::trimmed;

constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
constexpr bool is_lower_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || is_digit(letter);
}

/// Text for errors: control and foreign bytes as \xNN, at most 80 bytes, 'quoted' when it is empty
/// or has blanks.
std::string shown(std::string_view text);

/// Digits alone, that fit an int.
std::optional<int> parse_number(std::string_view text);

}  // namespace trireme::launch
