#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::runtime {

/// The parts between separators, empty ones too: one more than there are separators.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace trireme::runtime
