// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/task_record.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/text.hpp"

#include <sys/wait.h>

#include <csignal>
#include <limits>

namespace trireme::record {
namespace {

using base::format;

constexpr std::size_t longest_line = 4096;

struct SignalName {
  int number;
  const char* name;
};
constexpr SignalName signal_names[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
    {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"}, {SIGPIPE, "SIGPIPE"},
    {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
    {SIGSYS, "SIGSYS"}};

base::Failure no_record(std::string_view line, std::string_view why) {
  return {base::ExitCode::checkpoint,
          format("'{}' is no record of a task ({})", base::shown(line), why)};
}

/// A whole number of the object, from 0 to `largest`.
template <typename Number>
bool read_number(const base::Json& object, const char* key, std::int64_t largest, Number& out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  const auto number = found->get<std::int64_t>();
  if (number < 0 || number > largest) return false;
  out = static_cast<Number>(number);
  return true;
}

/// Host names; keeps the line free of what JSON would have to escape.
std::string clean(std::string_view node) {
  std::string safe;
  for (const char letter : node.substr(0, 255)) {
    const bool plain = base::is_lower_or_digit(letter) || (letter >= 'A' && letter <= 'Z') ||
                       letter == '-' || letter == '.' || letter == '_';
    safe += plain ? letter : '?';
  }
  return safe;
}

}  // namespace

const char* name(OutOfMemory value) {
  switch (value) {
    case OutOfMemory::no:
      return "no";
    case OutOfMemory::likely:
      return "likely";
    case OutOfMemory::yes:
      return "yes";
  }
  return "?";
}

std::optional<int> TaskRecord::exit_code() const {
  if (!WIFEXITED(wait_status)) return std::nullopt;
  return WEXITSTATUS(wait_status);
}

std::optional<int> TaskRecord::signal() const {
  if (!WIFSIGNALED(wait_status)) return std::nullopt;
  return WTERMSIG(wait_status);
}

std::string signal_text(int signal) {
  for (const auto& known : signal_names) {
    if (known.number == signal) return known.name;
  }
  return format("signal {}", signal);
}

std::string cause_text(const TaskRecord& record) {
  std::string text;
  if (const auto code = record.exit_code()) text = format("exit code {}", *code);
  if (const auto signal = record.signal()) text = format("signal {}", signal_text(*signal));
  switch (record.out_of_memory) {
    case OutOfMemory::no:
      break;
    case OutOfMemory::likely:
      text += ", likely out of memory";
      break;
    case OutOfMemory::yes:
      text += ", out of memory";
      break;
  }
  return text;
}

std::string records_link(std::uint32_t step) {
  return format("records-of-step-{}", step);
}

std::string record_line(const TaskRecord& record) {
  const auto signal = record.signal();
  const auto code = record.exit_code();
  return format(
      R"({{"time_ms":{},"job":{},"step":{},"restart":{},"node":"{}","rank":{},"local_rank":{},)"
      R"("process":{},"wait_status":{},"exit_code":{},"signal":{},"out_of_memory":"{}"}})",
      record.time_ms, record.job, record.step, record.restart, clean(record.node), record.rank,
      record.local_rank, record.process, record.wait_status, code ? format("{}", *code) : "null",
      signal ? format("\"{}\"", signal_text(*signal)) : "null", name(record.out_of_memory));
}

base::Result<TaskRecord> parse_record(std::string_view line) {
  if (line.size() > longest_line) return no_record(line, "it is too long");
  const auto json = base::parse_json(line, "record", base::ExitCode::checkpoint);
  if (!json) return no_record(line, json.failure().text);
  constexpr std::int64_t u32 = std::numeric_limits<std::uint32_t>::max();
  constexpr std::int64_t i64 = std::numeric_limits<std::int64_t>::max();
  TaskRecord record;
  const auto& object = *json;
  if (!object.is_object() || !read_number(object, "time_ms", i64, record.time_ms) ||
      !read_number(object, "job", u32, record.job) ||
      !read_number(object, "step", u32, record.step) ||
      !read_number(object, "restart", u32, record.restart) ||
      !read_number(object, "rank", u32, record.rank) ||
      !read_number(object, "local_rank", u32, record.local_rank) ||
      !read_number(object, "process", i64, record.process) ||
      !read_number(object, "wait_status", 0xFFFF, record.wait_status)) {
    return no_record(line, "a number is missing or out of range");
  }
  const auto node = object.find("node");
  const auto memory = object.find("out_of_memory");
  if (node == object.end() || !node->is_string() || memory == object.end() ||
      !memory->is_string()) {
    return no_record(line, "a text is missing");
  }
  record.node = node->get<std::string>();
  for (const auto value : {OutOfMemory::no, OutOfMemory::likely, OutOfMemory::yes}) {
    if (memory->get<std::string>() == name(value)) record.out_of_memory = value;
  }
  if (record_line(record) != line) return no_record(line, "its parts contradict each other");
  return record;
}

std::optional<std::int64_t> memory_kills_in(std::string_view text) {
  constexpr std::string_view word = "oom_kill ";
  for (const auto line : base::split(text, '\n')) {
    if (!line.starts_with(word)) continue;
    const auto number = base::parse_number(base::trimmed(line.substr(word.size())));
    if (!number) return std::nullopt;
    return *number;
  }
  return std::nullopt;
}

OutOfMemory detect_out_of_memory(int wait_status, const MemoryKills& before,
                                 const MemoryKills& after) {
  const auto rose = [](std::optional<std::int64_t> old, std::optional<std::int64_t> now) {
    return old && now && *now > *old;
  };
  if (!WIFSIGNALED(wait_status) || WTERMSIG(wait_status) != SIGKILL) return OutOfMemory::no;
  // The step's cgroup may be younger than the first look, and has counted from nothing then.
  if (rose(before.step.value_or(0), after.step)) return OutOfMemory::yes;
  return rose(before.node, after.node) ? OutOfMemory::likely : OutOfMemory::no;
}

}  // namespace trireme::record
