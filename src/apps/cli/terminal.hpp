// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/log_terminal.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::apps {

struct TerminalSize {
  std::size_t columns = 0;
  std::size_t rows = 0;
};
/// Size of the terminal behind a descriptor at this moment; nothing if there is none, or none that
/// knows its size.
std::optional<TerminalSize> terminal_size(int descriptor);

/// Colour on a terminal, unless NO_COLOR (no-color.org), or else where FORCE_COLOR or
/// CLICOLOR_FORCE is set; these reach ranks whose stderr is a pipe of the launcher's.
bool wants_colour(const base::Environment& environment, int descriptor);

/// ASCII where the locale names an encoding other than UTF-8, or the terminal is Linux's own.
base::Glyphs glyphs_of(const base::Environment& environment);

/// Terminal of stderr, or the one that the process that has started this rank by `--ranks` writes
/// our stderr to. None if TERM is "dumb".
base::log::Terminal log_terminal(const base::Environment& environment);

/// Variable with the path of the terminal that the ranks' stderr leads to.
inline constexpr std::string_view terminal_variable = "TRIREME_TERMINAL";
/// Path for it; empty if stderr is no terminal on which lines are drawn.
std::string terminal_path(const base::Environment& environment);

}  // namespace trireme::apps
