// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/launch/task_record.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Why a run ended: told from what it left in its run directory, from what the Slurm plugin noted
/// of its tasks, and from what Slurm itself says. All of it is read as the words of strangers.
namespace trireme::postmortem {

/// One line of RUN/log/r0003.txt.
struct LogLine {
  std::int64_t time_ms = 0;  ///< since 1970
  std::string level;         ///< "error"
  int rank = 0;
  int world_size = 0;
  std::string node;
  std::string room;
  std::string text;  ///< with the lines that followed it, if it had several
};

/// Refuses lines that the log would not write.
base::Result<LogLine> parse_log_line(std::string_view line);

/// Whether lines of earlier starts of the run count.
enum class Attempts { last, all };

/// Lines of all ranks in the order of time, those of one rank in theirs. Of each file at most the
/// last 4 MiB are read; `notes` says so where that leaves lines out. Attempts::last leaves out
/// ranks that the last start does not have: theirs are words of an earlier one.
std::vector<LogLine> read_logs(const std::filesystem::path& run, Attempts attempts,
                               std::vector<std::string>& notes);

/// Whether a start that is told in such lines ran outside of any Slurm job.
bool ran_outside_jobs(const std::vector<LogLine>& lines);

enum class Ending { finished, stopped, failed, unknown };
const char* name(Ending ending);

/// What Slurm says of the job.
struct SlurmView {
  std::string state;   ///< "OUT_OF_MEMORY", "NODE_FAIL"; empty when it says nothing
  std::string detail;  ///< its own words
};

/// The first thing that went wrong.
struct FirstCause {
  std::string text;
  std::optional<int> rank;
  std::optional<int> task;  ///< the launcher's number of that rank
  std::string host;
  std::int64_t time_ms = 0;  ///< 0 when nobody noted it
  /// "all_reduce number 7 of process group 'tp', which misses ranks 2"; empty without one.
  std::string collective;
  /// What NCCL itself said of it, a line each.
  std::vector<std::string> account;
  std::string log;
  /// As the plugin saw the task end: "signal SIGKILL, likely out of memory"; empty without a
  /// record.
  std::string end_of_task;
};

struct Event {
  std::int64_t time_ms = 0;
  std::string who;   ///< "rank 3 on n2", "task 5 on n1"
  std::string what;  ///< of a log its line, of a record how the task ended
};

struct Postmortem {
  std::filesystem::path run;
  std::string job;  ///< "1234.0"; empty outside of Slurm
  Ending ending = Ending::unknown;
  std::optional<int> exit_code;
  std::optional<FirstCause> cause;
  std::vector<Event> events;   ///< what others did, in the order of time
  std::int64_t last_step = 0;  ///< 0 before the first
  std::optional<double> last_loss;
  std::int64_t starts = 0;
  std::optional<std::int64_t> newest_checkpoint;
  SlurmView slurm;
  std::vector<std::string> advice;
  std::vector<std::string> notes;  ///< what could not be read
};

/// What a postmortem is told from beside the run directory.
struct Evidence {
  /// Files of task records (docs/launch-contract.md); RUN/log/tasks*.jsonl are read anyway.
  std::vector<std::filesystem::path> records;
  SlurmView slurm;
};

/// Fails (ExitCode::usage) where `run` is no run directory.
base::Result<Postmortem> examine(const std::filesystem::path& run, const Evidence& evidence);

/// The Slurm job that the run's last start belonged to, "1234.0"; empty when its logs name none.
std::string job_of_run(const std::filesystem::path& run);

/// Asks sacct, else scontrol; empty where neither answers within seconds.
SlurmView ask_slurm(const std::string& job);
/// The line of sacct --parsable2 for the job, the first that it printed.
SlurmView parse_sacct(std::string_view answer);

/// What to do, from docs/failure-guide.md.
std::vector<std::string> advice_for(const Postmortem& postmortem);

std::string text_of(const Postmortem& postmortem);
base::Json to_json(const Postmortem& postmortem);
/// "2026-11-21 09:37:34.123".
std::string utc_text(std::int64_t time_ms);

}  // namespace trireme::postmortem
