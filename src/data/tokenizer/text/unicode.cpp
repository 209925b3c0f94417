// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/text/unicode.hpp"

#include "trireme/base/utf8.hpp"

#include <algorithm>
#include <array>

namespace trireme::data {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Bytes of the sequence that `lead` begins in well-formed text.
std::size_t bytes_of(unsigned char lead) {
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1};
  const auto bytes = bytes_of(lead);
  auto value = static_cast<char32_t>(lead & (0xFFU >> (bytes + 1)));
  for (std::size_t i = 1; i < bytes; ++i) value = (value << 6) | (byte_at(text, at + i) & 0x3FU);
  return {value, bytes};
}

CodePoint code_point_before(std::string_view text, std::size_t end) {
  auto at = end - 1;
  while (at > 0 && (byte_at(text, at) & 0xC0U) == 0x80U) --at;
  return code_point_at(text, at);
}

bool is_white_space(char32_t code_point) {
  if (code_point < 0x80) return code_point == ' ' || (code_point >= 9 && code_point <= 13);
  return code_point == 0x85 || code_point == 0xA0 || code_point == 0x1680 ||
         (code_point >= 0x2000 && code_point <= 0x200A) || code_point == 0x2028 ||
         code_point == 0x2029 || code_point == 0x202F || code_point == 0x205F ||
         code_point == 0x3000;
}

bool contains(std::span<const CodeRange> ascending, char32_t code_point) {
  const auto after =
      std::upper_bound(ascending.begin(), ascending.end(), code_point,
                       [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ascending.begin() && code_point <= std::prev(after)->last;
}

namespace {

struct ByteLevel {
  std::array<char32_t, 256> character{};
  std::array<int, 512> byte{};
};

ByteLevel make_byte_level() {
  ByteLevel table;
  table.byte.fill(-1);
  char32_t next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const auto character = prints ? static_cast<char32_t>(byte) : next++;
    table.character[byte] = character;
    table.byte[character] = static_cast<int>(byte);
  }
  return table;
}

const ByteLevel& byte_level() {
  static const ByteLevel table = make_byte_level();
  return table;
}

}  // namespace

char32_t byte_to_character(unsigned char byte) {
  return byte_level().character[byte];
}

std::string byte_level_text(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    base::append_utf8(text, byte_to_character(static_cast<unsigned char>(byte)));
  }
  return text;
}

bool is_byte_level(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, bytes] = code_point_at(text, at);
    if (value >= byte_level().byte.size() || byte_level().byte[value] < 0) return false;
    at += bytes;
  }
  return true;
}

std::string byte_level_bytes(std::string_view text) {
  if (!is_byte_level(text)) return std::string(text);
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = code_point_at(text, at);
    bytes.push_back(static_cast<char>(byte_level().byte[value]));
    at += size;
  }
  return bytes;
}

}  // namespace trireme::data
