#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Small text, without locales. Private to the room.
namespace trireme::launch {

constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
constexpr bool is_lower_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || is_digit(letter);
}
constexpr bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F;
}

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);

/// For errors: control and foreign bytes as \xNN, at most 80 bytes, 'quoted' when it is empty or
/// has blanks.
std::string shown(std::string_view text);

/// Digits alone, that fit an int.
std::optional<int> parse_number(std::string_view text);

/// Parts between separators; an empty text has none.
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace trireme::launch
