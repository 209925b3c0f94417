// SPDX-License-Identifier: Apache-2.0
#include "text.hpp"

#include "trireme/base/format.hpp"

#include <charconv>

namespace trireme::launch {

std::string shown(std::string_view text) {
  constexpr std::size_t most = 80;
  std::string safe;
  for (const char letter : text.substr(0, most)) {
    const auto byte = static_cast<unsigned char>(letter);
    safe += is_control(letter) || byte > 0x7E ? base::format("\\x{:02x}", byte)
                                              : std::string(1, letter);
  }
  if (text.size() > most) safe += "...";
  return text.empty() || text.find(' ') != std::string_view::npos ? "'" + safe + "'" : safe;
}

std::optional<int> parse_number(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  int number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace trireme::launch
