// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Report on why a run ended, from the files in its run directory, the Slurm plugin's task records,
/// and Slurm's own accounting. All of it is parsed as untrusted input.
namespace trireme::postmortem {

/// Line of RUN/log/r0003.txt.
struct LogLine {
  std::int64_t time_ms = 0;  ///< since 1970
  /// The same where the rank's lines ascend by it: of a clock that nobody sets back.
  std::int64_t order_ms = 0;
  std::string level;  ///< "error"
  int rank = 0;
  int world_size = 0;
  std::string node;
  std::string room;
  std::string text;  ///< with the lines that followed it, if it had several
};

/// Refuses lines that the log would not write.
base::Result<LogLine> parse_log_line(std::string_view line);

/// Starts of the run whose lines count.
enum class Attempts { last, all };

/// Lines of all ranks in the order of time, those of one rank in their own order. At most the last
/// 4 MiB of each file are read, of many files less (512 MiB in all); `notes` reports where that
/// leaves lines out. Attempts::last leaves out ranks that the last start does not have: their lines
/// are of an earlier one.
std::vector<LogLine> read_logs(const std::filesystem::path& run, Attempts attempts,
                               std::vector<std::string>& notes);

/// True if the start in these lines ran outside of any Slurm job.
bool ran_outside_jobs(const std::vector<LogLine>& lines);

enum class Ending { finished, stopped, failed, unknown };
const char* name(Ending ending);

/// Slurm's record of the job.
struct SlurmView {
  std::string state;   ///< "OUT_OF_MEMORY", "NODE_FAIL"; empty when it says nothing
  std::string detail;  ///< as Slurm words it
};

/// First failure of the run.
struct FirstCause {
  std::string text;
  std::optional<int> rank;
  std::optional<int> task;  ///< the launcher's number of that rank
  std::string host;
  std::int64_t time_ms = 0;  ///< 0 when it is not recorded
  /// "all_reduce number 7 of process group 'tp', which misses ranks 2"; empty without one.
  std::string collective;
  /// NCCL's own diagnosis of the failure, a line each.
  std::vector<std::string> account;
  std::string log;
  /// End of the task in the plugin's record: "signal SIGKILL, likely out of memory"; empty without
  /// a record.
  std::string end_of_task;
};

/// Failure as a start has noted it in failure.json.
struct NotedFailure {
  FirstCause cause;
  std::optional<int> exit_code;
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
  std::vector<Event> events;   ///< events of other ranks, in the order of time
  std::int64_t last_step = 0;  ///< 0 before the first
  std::optional<double> last_loss;
  std::int64_t starts = 0;
  /// Committed steps, good and damaged ones; 0 where they are not known.
  std::size_t checkpoint_count = 0;
  /// Step that a start would go on after.
  std::optional<std::int64_t> newest_checkpoint;
  SlurmView slurm;
  std::vector<std::string> advice;
  std::vector<std::string> notes;  ///< what could not be read
};

/// Steps of a run in its checkpoints, as far as manifests and sizes tell.
struct Checkpoints {
  std::size_t count = 0;  ///< committed ones, good and damaged
  std::optional<std::int64_t> newest_usable;
  std::vector<std::string> notes;  ///< why newer ones are not usable
};
using FindCheckpoints = std::function<Checkpoints(const std::filesystem::path& run)>;

/// Sources of a postmortem beside the run directory.
struct Evidence {
  /// Files of task records (docs/launch-contract.md); RUN/log/tasks*.jsonl are read anyway.
  std::vector<std::filesystem::path> records;
  SlurmView slurm;
  /// The run's record, where it was read before.
  const telemetry::RunRecord* record = nullptr;
  /// Without it nothing is told of checkpoints, which may lie in thousands of files or far away.
  FindCheckpoints checkpoints = {};
};

/// Ending that the run itself has noted, in failure.json or as the last event of metrics.jsonl;
/// unknown: examine() also reads logs and records. Reads one small file.
Ending noted_ending(const std::filesystem::path& run, telemetry::End end);

/// Failures that later starts have put aside (RUN/failure-1.json and so on), oldest first; what is
/// no such file is left out.
std::vector<NotedFailure> earlier_failures(const std::filesystem::path& run);

/// True if a start has opened this run directory.
bool is_run(const std::filesystem::path& path);

/// Fails (ExitCode::usage) where `run` is no run directory.
base::Result<Postmortem> examine(const std::filesystem::path& run, const Evidence& evidence);

/// Ending alone, without looking at checkpoints, which may lie in thousands of files or far away.
base::Result<Ending> ending_of(const std::filesystem::path& run, const Evidence& evidence);

/// The Slurm job that the run's last start belonged to, "1234.0"; empty when its logs name none.
std::string job_of_run(const std::filesystem::path& run);

/// Job's state from sacct, else scontrol; empty where neither answers within seconds.
SlurmView ask_slurm(const std::string& job);
/// The line of sacct --parsable2 for the job, the first that it printed.
SlurmView parse_sacct(std::string_view answer);

/// Remedies, from docs/failure-guide.md.
std::vector<std::string> advice_for(const Postmortem& postmortem);

std::string text_of(const Postmortem& postmortem);
base::Json to_json(const Postmortem& postmortem);
/// "2026-11-21 09:37:34.123".
std::string utc_text(std::int64_t time_ms);

}  // namespace trireme::postmortem
