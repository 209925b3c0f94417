// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/log.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/log_file.hpp"
#include "trireme/base/log_terminal.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/base/utf8.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <utility>

namespace trireme::base::log {
namespace {

/// The process's one log. A log is the exception to "no singletons": whatever fails must be able
/// to speak without having been handed a logger.
struct State {
  Settings settings;
  int file = -1;
  /// The file did not take all of the last line.
  bool torn = false;
  Terminal terminal;
  /// Text of the terminal's last line, with the cursor at its begin.
  std::string status;
  bool status_stands = false;
  std::mutex mutex;
};

State& state() {
  static State instance;
  return instance;
}

constexpr std::array<const char*, 4> names{"debug", "info", "warning", "error"};
constexpr std::array<const char*, 4> colours{"\033[2m", "", "\033[33m", "\033[31m"};

constexpr std::string_view erased_line = "\r\033[K";

/// Local time without the date: "09:37:12".
std::string local_seconds(const timespec& now) {
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &parts)};
}

/// The same with milliseconds.
std::string local_time(const timespec& now) {
  return format("{}.{:03}", local_seconds(now), now.tv_nsec / 1'000'000);
}

/// Writes a line with one call, so that lines of several ranks do not mix. False if not all was
/// taken.
bool emit(int descriptor, std::string_view line) {
  while (!line.empty()) {
    const auto count = ::write(descriptor, line.data(), line.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    line.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// Writes to the rank's file.
void emit_to_file(State& log, const std::string& line) {
  // The torn part of the line before must not run into this one.
  const bool taken = emit(log.file, log.torn ? "\n" + line : line);
  if (!taken && !log.torn) {
    emit(STDERR_FILENO, format("cannot write to log '{}': {}; lines are missing there\n",
                               log.settings.file, std::strerror(errno)));
  }
  log.torn = !taken;
}

/// Ranks that a line speaks of.
enum class Speaker { this_rank, all_ranks };

/// Writes above the status line, with one call. The cursor stays at the begin of the status line:
/// what others write to the terminal does not stand behind it.
void emit_to_terminal(State& log, std::string_view lines) {
  const bool erases = log.terminal.is_shared || log.status_stands;
  const auto status = log.status.empty() ? std::string{} : log.status + "\r";
  emit(STDERR_FILENO, format("{}{}{}", erases ? erased_line : "", lines, status));
  log.status_stands = !status.empty();
}

/// The message for a terminal, broken at its width behind the time.
std::string terminal_lines(const State& log, Level level, Speaker speaker, std::string_view room,
                           std::string_view message, const timespec& now) {
  const auto& identity = log.settings.identity;
  const auto index = static_cast<std::size_t>(level);
  std::string said;
  if (level >= Level::warning) said += format("{}: ", names[index]);
  if (speaker == Speaker::this_rank && identity.world_size > 1) {
    said += format("r{:04}/{:04} {} ", identity.rank, identity.world_size, identity.node);
  }
  said += format("{}: {}", room, message);
  constexpr std::size_t least_columns = 40;
  const auto columns = std::max(least_columns, log.terminal.columns()) - time_columns;
  const bool paint = log.settings.colour && *colours[index] != '\0';
  std::string text;
  auto before = local_seconds(now);
  before.resize(time_columns, ' ');
  for (const auto paragraph : split(said, '\n')) {
    for (const auto& line : wrapped(paragraph, columns)) {
      text += paint ? format("{}{}{}\033[0m\n", before, colours[index], line)
                    : format("{}{}\n", before, line);
      before.assign(time_columns, ' ');
    }
  }
  return text;
}

void write_to(Level level, std::string_view room, std::string_view message, bool to_stderr,
              Speaker speaker = Speaker::this_rank) {
  auto& log = state();
  const auto& settings = log.settings;
  if (level < settings.threshold && log.file < 0) return;
  const auto index = static_cast<std::size_t>(level);
  // A message may hold a name of any bytes; a log is text.
  std::string repaired;
  message = repair_utf8(message, repaired);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto said = format("{:<7} r{:04}/{:04} {} {}: {}", names[index], settings.identity.rank,
                           settings.identity.world_size, settings.identity.node, room, message);
  const std::lock_guard lock(log.mutex);
  if (to_stderr && level >= settings.threshold && log.terminal.columns) {
    // Nothing of a run's progress goes on below an error.
    if (level == Level::error) log.status.clear();
    emit_to_terminal(log, terminal_lines(log, level, speaker, room, message, now));
  } else if (to_stderr && level >= settings.threshold) {
    const auto line = format("{} {}", local_time(now), said);
    const bool paint = settings.colour && *colours[index] != '\0';
    emit(STDERR_FILENO, paint ? format("{}{}\033[0m\n", colours[index], line) : line + "\n");
  }
  if (log.file >= 0) emit_to_file(log, format("{} {}\n", utc_text(now), said));
}

}  // namespace

void configure(const Settings& settings) {
  auto& log = state();
  const std::lock_guard lock(log.mutex);
  if (log.file >= 0) ::close(log.file);
  log.file = -1;
  log.settings = settings;
  if (!settings.file.empty()) {
    log.file = ::open(settings.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log.file < 0) {
      emit(STDERR_FILENO, format("cannot open log '{}': {}; this rank logs on stderr only\n",
                                 settings.file, std::strerror(errno)));
    }
  }
}

const Settings& settings() {
  return state().settings;
}

void write(Level level, std::string_view room, std::string_view message) {
  write_to(level, room, message, true);
}

void write_to_file(Level level, std::string_view room, std::string_view message) {
  write_to(level, room, message, false);
}

void write_once(Level level, std::string_view room, std::string_view message) {
  write_to(level, room, message, state().settings.identity.rank == 0, Speaker::all_ranks);
}

void attach_terminal(Terminal terminal) {
  auto& log = state();
  const std::lock_guard lock(log.mutex);
  log.terminal = std::move(terminal);
  log.status.clear();
  log.status_stands = false;
}

std::size_t terminal_columns() {
  const auto& terminal = state().terminal;
  return terminal.columns ? terminal.columns() : 0;
}

Glyphs terminal_glyphs() {
  return state().terminal.glyphs;
}

void write_to_terminal(std::string_view line) {
  auto& log = state();
  if (!log.terminal.columns) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  auto time = local_seconds(now);
  time.resize(time_columns, ' ');
  const std::lock_guard lock(log.mutex);
  emit_to_terminal(log, format("{}{}\n", time, line));
}

void set_status_line(std::string_view line) {
  auto& log = state();
  if (!log.terminal.columns) return;
  const std::lock_guard lock(log.mutex);
  if (line.empty() && !log.status_stands) return;
  log.status = line;
  emit_to_terminal(log, "");
}

}  // namespace trireme::base::log
