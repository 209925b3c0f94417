// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/utf8.hpp"

#include "trireme/base/format.hpp"

#include <cstdint>
#include <cstring>

namespace trireme::base {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

/// Bytes of the sequence that `lead` begins (0 for none), and the range of its second byte.
struct Lead {
  std::size_t bytes;
  unsigned char second_first;
  unsigned char second_last;
};
Lead lead_of(unsigned char lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

struct Sequence {
  std::size_t bytes;  ///< of a whole code point, or of the part that cannot become one
  bool well_formed;
};
Sequence sequence_at(std::string_view text, std::size_t at) {
  const auto lead = lead_of(byte_at(text, at));
  if (lead.bytes == 0) return {1, false};
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    const auto first = i == 1 ? lead.second_first : 0x80;
    const auto last = i == 1 ? lead.second_last : 0xBF;
    if (at + i >= text.size() || byte_at(text, at + i) < first || byte_at(text, at + i) > last) {
      return {i, false};
    }
  }
  return {lead.bytes, true};
}

/// Bytes of ASCII from `at` on, looked at eight at a time.
std::size_t skip_ascii(std::string_view text, std::size_t at) {
  constexpr std::uint64_t high_bits = 0x8080808080808080ULL;
  while (at + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    if ((word & high_bits) != 0) break;
    at += 8;
  }
  while (at < text.size() && byte_at(text, at) < 0x80) ++at;
  return at;
}

}  // namespace

std::size_t well_formed_prefix(std::string_view text) {
  std::size_t at = 0;
  while ((at = skip_ascii(text, at)) < text.size()) {
    const auto sequence = sequence_at(text, at);
    if (!sequence.well_formed) return at;
    at += sequence.bytes;
  }
  return at;
}

std::string_view repair_utf8(std::string_view text, std::string& storage) {
  auto good = well_formed_prefix(text);
  if (good == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + 64);
  while (true) {
    storage.append(text.substr(0, good));
    text.remove_prefix(good);
    if (text.empty()) return storage;
    append_utf8(storage, 0xFFFD);
    text.remove_prefix(sequence_at(text, 0).bytes);
    good = well_formed_prefix(text);
  }
}

std::string repaired_utf8(std::string_view text) {
  std::string storage;
  return std::string(repair_utf8(text, storage));
}

std::optional<NotText> not_text(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    return NotText{"is UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"};
  }
  const auto zero = bytes.find('\0');
  if (zero == std::string_view::npos) return std::nullopt;
  return NotText{format("has a NUL at byte {}", zero), "save it as UTF-8"};
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto tail = [&](int shift) { put(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0U | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    put(0xE0U | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    put(0xF0U | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace trireme::base
