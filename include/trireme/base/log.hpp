// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"

#include <string>
#include <string_view>
#include <utility>

/// The log that people read (stderr and, when asked, a file per rank). Machines read metrics.
namespace trireme::base::log {

enum class Level { debug, info, warning, error };

/// Rank and node that each line names. Set once at start-up, before threads; until then this is
/// "rank 0 of 1".
struct Identity {
  int rank = 0;
  int world_size = 1;
  std::string node;
};

struct Settings {
  Identity identity;
  Level threshold = Level::info;
  /// ANSI colours on stderr; the entry point decides (terminal, NO_COLOR).
  bool colour = false;
  /// Every line of this rank is appended here too, when not empty, with date and time in UTC.
  std::string file;
};

void configure(const Settings& settings);
const Settings& settings();

/// One line: time, level, r0003/0064, node, room, message. Thread-safe.
void write(Level level, std::string_view room, std::string_view message);

/// One line for what all ranks do alike: only rank 0 prints it on stderr; each rank's file has it.
void write_once(Level level, std::string_view room, std::string_view message);

template <typename... Arguments>
void debug(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  if (settings().threshold <= Level::debug) {
    write_once(Level::debug, room, format(text, std::forward<Arguments>(arguments)...));
  }
}
template <typename... Arguments>
void info(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  write_once(Level::info, room, format(text, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void warning(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  write_once(Level::warning, room, format(text, std::forward<Arguments>(arguments)...));
}

/// Lines about what only this rank sees.
namespace local {
template <typename... Arguments>
void debug(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  if (settings().threshold <= Level::debug) {
    write(Level::debug, room, format(text, std::forward<Arguments>(arguments)...));
  }
}
template <typename... Arguments>
void info(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  write(Level::info, room, format(text, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void warning(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  write(Level::warning, room, format(text, std::forward<Arguments>(arguments)...));
}
template <typename... Arguments>
void error(std::string_view room, format_string<Arguments...> text, Arguments&&... arguments) {
  write(Level::error, room, format(text, std::forward<Arguments>(arguments)...));
}
}  // namespace local

}  // namespace trireme::base::log
