// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/curve_text.hpp"
#include "trireme/base/log.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

/// The terminal at which a person reads the log. On it lines are short ("09:37:12 train: ..."), say
/// level and rank only where they matter, are broken at its width, and stand above a status line.
namespace trireme::base::log {

struct Terminal {
  /// Columns at this moment: it may be resized. Empty: there is no terminal.
  std::function<std::size_t()> columns = {};
  Glyphs glyphs = Glyphs::unicode;
  /// Several ranks write to it, one of them with a status line.
  bool is_shared = false;
};
/// Set once at start-up, before threads; tests may set it again.
void attach_terminal(Terminal terminal);

/// Columns of the terminal at this moment; 0 if there is none.
std::size_t terminal_columns();
Glyphs terminal_glyphs();

/// A line on the terminal alone, with the time before it. It may have colours, and is not broken:
/// its width, less `time_columns`, is its writer's.
void write_to_terminal(std::string_view line);
inline constexpr std::size_t time_columns = 10;

/// Line that stays below the lines of the log until the next call; empty: none any more. Without
/// effect off a terminal. It may have colours; its width is its writer's.
void set_status_line(std::string_view line);

}  // namespace trireme::base::log
