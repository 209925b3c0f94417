#include "text.hpp"

#include "trireme/base/format.hpp"

#include <charconv>

namespace trireme::launch {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

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

}  // namespace trireme::launch
