// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/log.hpp"

#include "trireme/base/log_file.hpp"
#include "trireme/base/utc.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>

namespace trireme::base::log {
namespace {

/// The process's one log. A log is the exception to "no singletons": whatever fails must be able
/// to speak without having been handed a logger.
struct State {
  Settings settings;
  int file = -1;
  /// The file did not take all of the last line.
  bool torn = false;
  std::mutex mutex;
};

State& state() {
  static State instance;
  return instance;
}

constexpr std::array<const char*, 4> names{"debug", "info", "warning", "error"};
constexpr std::array<const char*, 4> colours{"\033[2m", "", "\033[33m", "\033[31m"};

/// Local time without the date, for people at a terminal.
std::string local_time(const timespec& now) {
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  std::array<char, 32> text{};
  const auto length = std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
  return format("{}.{:03}", std::string_view(text.data(), length), now.tv_nsec / 1'000'000);
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

void write_to(Level level, std::string_view room, std::string_view message, bool to_stderr) {
  auto& log = state();
  const auto& settings = log.settings;
  if (level < settings.threshold && log.file < 0) return;
  const auto index = static_cast<std::size_t>(level);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto said = format("{:<7} r{:04}/{:04} {} {}: {}", names[index], settings.identity.rank,
                           settings.identity.world_size, settings.identity.node, room, message);
  const std::lock_guard lock(log.mutex);
  if (to_stderr && level >= settings.threshold) {
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
  write_to(level, room, message, state().settings.identity.rank == 0);
}

}  // namespace trireme::base::log
