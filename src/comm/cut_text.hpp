#pragma once

#include <string_view>

namespace trireme::comm {

/// The beginning of a text in UTF-8, of at most so many bytes and without half a character.
constexpr std::string_view cut_text(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  auto end = most_bytes;
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  // A character has at most three bytes behind its first.
  for (int i = 0; i < 3 && end > 0 && continues(end); ++i) --end;
  return text.substr(0, end);
}

}  // namespace trireme::comm
