// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"
#include "trireme/record/failure.hpp"
#include "trireme/telemetry/run_record.hpp"

#include "noted_failures.hpp"
#include "start_lines.hpp"
#include "task_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;

void use_failure(Postmortem& postmortem) {
  auto failure = noted_failure(postmortem.run);
  if (!failure.ok()) postmortem.notes.push_back(failure.failure().text);
  if (!failure.ok() || !*failure) return;
  postmortem.exit_code = (*failure)->exit_code;
  postmortem.cause = std::move((*failure)->cause);
  postmortem.ending = Ending::failed;
}

Ending ending_by(telemetry::End end) {
  switch (end) {
    case telemetry::End::done:
      return Ending::finished;
    case telemetry::End::stopped:
      return Ending::stopped;
    case telemetry::End::none:
      break;
  }
  return Ending::unknown;
}

/// Progress, and the recorded end of the run.
void use_record(Postmortem& postmortem, const telemetry::RunRecord& record) {
  if (record.steps.empty() && record.events.empty()) {
    postmortem.notes.emplace_back("metrics.jsonl has no step and no event: no step was begun");
  }
  postmortem.last_step = record.step;
  const bool has_line = !record.steps.empty() && record.steps.back().step == record.step;
  if (has_line && !std::isnan(record.steps.back().loss)) {
    postmortem.last_loss = record.steps.back().loss;
  }
  postmortem.starts = record.start_count;
  if (postmortem.ending != Ending::failed) postmortem.ending = ending_by(record.end);
}

void read_record(Postmortem& postmortem) {
  const auto record = telemetry::read_record(postmortem.run);
  if (record.ok()) {
    use_record(postmortem, *record);
  } else {
    postmortem.notes.push_back(record.failure().text);
  }
}

/// Errors and warnings of all ranks since the last start; equal ones of several ranks are all kept.
void use_logs(Postmortem& postmortem, const std::vector<LogLine>& lines) {
  std::set<int> spoken;
  for (const auto& line : lines) {
    if (line.level != "error" && line.level != "warning") continue;
    const bool is_error = line.level == "error";
    if (is_error && !postmortem.cause && postmortem.ending == Ending::unknown) {
      postmortem.ending = Ending::failed;
      postmortem.cause = FirstCause{};
      postmortem.cause->text = line.text;
      postmortem.cause->rank = line.rank;
      postmortem.cause->host = line.node;
      postmortem.cause->time_ms = line.time_ms;
    }
    // Only the first error of each rank: later ones are consequences.
    if (is_error && !spoken.insert(line.rank).second) continue;
    if (postmortem.events.size() < most_events) {
      postmortem.events.push_back({line.time_ms,
                                   base::format("rank {} on {}", line.rank, line.node),
                                   base::format("{}: {}", line.level, line.text)});
    }
  }
}

void use_checkpoints(Postmortem& postmortem, const Evidence& evidence) {
  if (!evidence.checkpoints) return;
  auto found = evidence.checkpoints(postmortem.run);
  postmortem.checkpoint_count = found.count;
  postmortem.newest_checkpoint = found.newest_usable;
  std::move(found.notes.begin(), found.notes.end(), std::back_inserter(postmortem.notes));
}

void refine_time(Postmortem& postmortem) {
  if (!postmortem.cause) return;
  // Times in failure.json of older versions are whole seconds: the first error in a log is more
  // exact.
  for (const auto& event : postmortem.events) {
    const bool is_error = event.what.starts_with("error");
    if (is_error && std::abs(event.time_ms - postmortem.cause->time_ms) < 2000) {
      postmortem.cause->time_ms = event.time_ms;
      return;
    }
  }
}

}  // namespace

const char* name(Ending ending) {
  switch (ending) {
    case Ending::finished:
      return "finished";
    case Ending::stopped:
      return "stopped";
    case Ending::failed:
      return "failed";
    case Ending::unknown:
      return "unknown";
  }
  return "?";
}

Ending noted_ending(const fs::path& run, telemetry::End end) {
  const auto failure = noted_failure(run);
  return failure.ok() && *failure ? Ending::failed : ending_by(end);
}

bool is_run(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "config.resolved.conf", error) ||
         fs::exists(path / "metrics.jsonl", error);
}

namespace {

/// All but checkpoints and advice.
base::Result<Postmortem> judge(const fs::path& run, const Evidence& evidence) {
  std::error_code error;
  const bool known = is_run(run) || fs::exists(record::failure_of_run(run), error) ||
                     fs::is_directory(run / "log", error);
  if (!known) {
    return base::usage_failure(base::format(
        "'{}' is no run directory (it has no config.resolved.conf, metrics.jsonl, failure.json or "
        "log); name the folder that run.directory named",
        run.string()));
  }
  Postmortem postmortem;
  postmortem.run = run;
  postmortem.slurm = evidence.slurm;
  use_failure(postmortem);
  if (evidence.record != nullptr) {
    use_record(postmortem, *evidence.record);
  } else {
    read_record(postmortem);
  }
  const auto lines = read_logs(run, Attempts::last, postmortem.notes);
  postmortem.job = job_of(lines);
  use_task_records(postmortem, evidence, lines);
  use_logs(postmortem, lines);
  std::stable_sort(postmortem.events.begin(), postmortem.events.end(),
                   [](const auto& one, const auto& other) { return one.time_ms < other.time_ms; });
  refine_time(postmortem);
  return postmortem;
}

}  // namespace

base::Result<Postmortem> examine(const fs::path& run, const Evidence& evidence) {
  auto postmortem = judge(run, evidence);
  if (!postmortem.ok()) return postmortem;
  use_checkpoints(*postmortem, evidence);
  postmortem->advice = advice_for(*postmortem);
  return postmortem;
}

base::Result<Ending> ending_of(const fs::path& run, const Evidence& evidence) {
  const auto postmortem = judge(run, evidence);
  if (!postmortem.ok()) return postmortem.failure();
  return postmortem->ending;
}

}  // namespace trireme::postmortem
