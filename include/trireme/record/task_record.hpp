// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// Record of how a task ended, as the node saw it: one JSON object a line, appended by the plugin
/// to a file of the job on that node, and read by the postmortem.
namespace trireme::record {

enum class OutOfMemory { no, likely, yes };
const char* name(OutOfMemory value);

struct TaskRecord {
  /// Milliseconds since 1970.
  std::int64_t time_ms = 0;
  std::uint32_t job = 0;
  std::uint32_t step = 0;
  std::uint32_t restart = 0;
  std::string node;
  std::uint32_t rank = 0;
  std::uint32_t local_rank = 0;
  std::int64_t process = 0;
  /// Status as waitpid returns it.
  int wait_status = 0;
  OutOfMemory out_of_memory = OutOfMemory::no;

  bool operator==(const TaskRecord&) const = default;
  /// Exit code of the task; none when a signal ended it.
  std::optional<int> exit_code() const;
  /// The signal that ended the task; none when it exited.
  std::optional<int> signal() const;
};

/// "exit code 6", "signal SIGKILL, likely out of memory".
std::string cause_text(const TaskRecord& record);
/// "SIGKILL"; "signal 99" for one without a name.
std::string signal_text(int signal);

/// Name of a link in the job's folder on a node, made by a rank of a step: to the folder of the run
/// that is to have the node's records of this step, too. The copy is tasks.NODE.jsonl.
std::string records_link(std::uint32_t step);

/// Record as one line, without its line break.
std::string record_line(const TaskRecord& record);
/// Refuses lines that record_line() would not write.
base::Result<TaskRecord> parse_record(std::string_view line);

/// Counters of the kernel's out-of-memory kills: of the step's cgroup (the text of memory.events or
/// memory.oom_control) and of the whole node (of /proc/vmstat).
struct MemoryKills {
  std::optional<std::int64_t> step;
  std::optional<std::int64_t> node;
};
/// The number behind "oom_kill" in such a text.
std::optional<std::int64_t> memory_kills_in(std::string_view text);
/// Diagnosis of a task that SIGKILL ended: killed for memory if the step's counter rose meanwhile;
/// likely, if only the node's rose.
OutOfMemory detect_out_of_memory(int wait_status, const MemoryKills& before,
                                 const MemoryKills& after);

}  // namespace trireme::record
