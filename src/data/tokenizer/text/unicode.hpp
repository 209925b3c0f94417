// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme::data {

/// The code point at byte `at` of well-formed text, and the step past it.
struct CodePoint {
  char32_t value;
  std::size_t bytes;
};
CodePoint code_point_at(std::string_view text, std::size_t at);
/// The code point that ends before byte `end`, end > 0.
CodePoint code_point_before(std::string_view text, std::size_t end);

/// The White_Space property, which is what \s means to Oniguruma and to Rust's regular expressions.
bool is_white_space(char32_t code_point);

struct CodeRange {
  std::uint32_t first;
  std::uint32_t last;
};
bool contains(std::span<const CodeRange> ascending, char32_t code_point);

/// Letters and numbers of Unicode 16 that Unicode 14 (PCRE2 10.42) did not have yet.
std::span<const CodeRange> letters_since_unicode_14();
std::span<const CodeRange> numbers_since_unicode_14();

/// Code points later than Unicode 9 that reorder or compose in newer tables.
std::span<const CodeRange> combining_since_unicode_9();

/// Character for a byte in GPT-2's byte-level encoding: itself when it prints, else U+0100 and up.
char32_t byte_to_character(unsigned char byte);
/// The text of `bytes` in that encoding.
std::string byte_level_text(std::string_view bytes);
/// Bytes that such text encodes; the text's own UTF-8 when one of its characters encodes no byte.
std::string byte_level_bytes(std::string_view text);
/// True when every character encodes a byte.
bool is_byte_level(std::string_view text);

}  // namespace trireme::data
