// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/text.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/utf8.hpp"

namespace trireme::base {
std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) {
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
    if (text.empty()) parts.emplace_back();
  }
  return parts;
}

std::optional<int> parse_number(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  return number_in<int>(text);
}

std::optional<std::size_t> first_broken_utf8(std::string_view text) {
  const auto good = well_formed_prefix(text);
  if (good == text.size()) return std::nullopt;
  return good;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto good = text.substr(0, well_formed_prefix(text));
    for (const char letter : good) {
      if (is_control(letter)) {
        shown += format("\\x{:02x}", static_cast<unsigned char>(letter));
      } else {
        shown += letter;
      }
    }
    text.remove_prefix(good.size());
    if (text.empty()) break;
    shown += format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(1);
  }
  return shown;
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string safe;
  for (const char letter : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(letter);
    safe += is_control(letter) || byte > 0x7E ? format("\\x{:02x}", byte) : std::string(1, letter);
  }
  if (text.size() > most) safe += "...";
  return text.empty() || text.find(' ') != std::string_view::npos ? "'" + safe + "'" : safe;
}

std::string_view cut_utf8(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  auto end = most_bytes;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  // A character has at most three bytes behind its first.
  for (int i = 0; i < 3 && end > 0 && continues(end); ++i) --end;
  return text.substr(0, end);
}

}  // namespace trireme::base
