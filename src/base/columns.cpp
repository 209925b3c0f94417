// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/columns.hpp"

#include <algorithm>

namespace trireme::base {
namespace {

bool begins_character(char letter) {
  return (static_cast<unsigned char>(letter) & 0xC0U) != 0x80U;
}

/// Offset of the character that stands at this column.
std::size_t offset_of(std::string_view text, std::size_t column) {
  std::size_t offset = 0;
  for (std::size_t characters = 0; offset < text.size(); ++offset) {
    if (begins_character(text[offset]) && characters++ == column) break;
  }
  return offset;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string filled(std::string_view text, std::size_t width) {
  const auto own = width_of(text);
  return std::string(text) + std::string(width - std::min(own, width), ' ');
}

std::string filled_left(std::string_view text, std::size_t width) {
  const auto own = width_of(text);
  return std::string(width - std::min(own, width), ' ') + std::string(text);
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  return text.substr(0, offset_of(text, columns));
}

std::string cut_to(std::string_view text, std::size_t width) {
  const auto own = width_of(text);
  if (own <= width) return std::string(text);
  return "…" + std::string(text.substr(offset_of(text, own - width + 1)));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (width_of(text) > width) {
    const auto end = offset_of(text, width);
    const auto blank = text.substr(0, end + 1).rfind(' ');
    const auto slash = text.substr(0, end).rfind('/');
    if (blank != std::string_view::npos && blank > 0) {
      lines.emplace_back(text.substr(0, blank));
      text.remove_prefix(blank + 1);
    } else {
      const bool is_path = slash != std::string_view::npos && slash > 0;
      lines.emplace_back(text.substr(0, is_path ? slash + 1 : end));
      text.remove_prefix(lines.back().size());
    }
  }
  lines.emplace_back(text);
  return lines;
}

std::string wrapped_rows(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::size_t>& widths) {
  std::string text;
  for (const auto& row : rows) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 0;
    for (std::size_t column = 0; column < row.size(); ++column) {
      cells.push_back(wrapped(row[column], widths[column]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      std::string one;
      for (std::size_t column = 0; column < cells.size(); ++column) {
        const auto& cell = cells[column];
        one += filled(line < cell.size() ? cell[line] : "", widths[column]) + "  ";
      }
      text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text;
}

}  // namespace trireme::base
