// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Columns of text in a terminal. Texts are UTF-8 without control characters
/// (base::printable()); a character counts as one column.
namespace trireme::base {

std::size_t width_of(std::string_view text);
/// The text, filled with blanks to a width.
std::string filled(std::string_view text, std::size_t width);
std::string filled_left(std::string_view text, std::size_t width);
/// The text's first columns, at most so many.
std::string_view first_columns(std::string_view text, std::size_t columns);
/// The end of the text behind "…" if it is wider: ends of paths tell them apart.
std::string cut_to(std::string_view text, std::size_t width);
/// Lines of at most this width, broken at blanks, else behind slashes, where there are any. At
/// least one.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// Table whose cells are wrapped to their columns' widths, with two blanks between columns.
std::string wrapped_rows(const std::vector<std::vector<std::string>>& rows,
                         const std::vector<std::size_t>& widths);

}  // namespace trireme::base
