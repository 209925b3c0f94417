// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Small functions of texts, without locales.
namespace trireme::base {

/// The text without blanks, tabs and line ends at both ends.
std::string_view trimmed(std::string_view text);
/// A view of a text that ends with the statement.
template <typename Text>
requires std::is_same_v<Text, std::string> std::string_view trimmed(Text&& text)
= delete;

/// The text with A to Z in lower case.
std::string lower_case(std::string_view text);

/// Parts between separators, empty ones too; an empty text has none.
std::vector<std::string_view> split(std::string_view text, char separator);

constexpr bool is_control(char letter) {
  return static_cast<unsigned char>(letter) < 0x20 || letter == '\x7f';
}
constexpr bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}
constexpr bool is_lower_or_digit(char letter) {
  return (letter >= 'a' && letter <= 'z') || is_digit(letter);
}

/// Digits alone, that fit an int.
std::optional<int> parse_number(std::string_view text);

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629).
std::optional<std::size_t> first_broken_utf8(std::string_view text);

/// The text with control and broken bytes as \xNN, so that an error about junk can be read.
std::string printable(std::string_view text);

/// Text for errors: control and foreign bytes as \xNN, at most 80 bytes, 'quoted' when it is empty
/// or has blanks.
std::string shown(std::string_view text);

/// The beginning of a text in UTF-8, of at most so many bytes and without half a character.
std::string_view cut_utf8(std::string_view text, std::size_t most_bytes);

/// FNV-1a (Fowler, Noll, Vo), 64 bit: a digest that is the same on every machine. It detects
/// changes, not attacks.
class Fnv1a {
 public:
  constexpr Fnv1a& add(std::string_view text) {
    for (const char letter : text) add_word(static_cast<unsigned char>(letter));
    return *this;
  }
  /// Adds one number as FNV-1a adds one byte.
  constexpr Fnv1a& add_word(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001B3U;
    return *this;
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace trireme::base
