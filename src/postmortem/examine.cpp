// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <set>
#include <tuple>

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr std::size_t largest_small_file = std::size_t{1} << 20;
constexpr std::size_t largest_records = std::size_t{64} << 20;
constexpr std::size_t most_events = 1000;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<int> small_number(const Json& json, const char* key) {
  const auto number = number_of(json, key);
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

/// Time in "2026-11-21T09:37:34.250Z" of failure.json; older files have whole seconds.
std::int64_t time_of(const std::string& text) {
  tm parts{};
  const char* const seconds_end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (seconds_end == nullptr) return 0;
  const std::string_view rest(seconds_end);
  int milliseconds = 0;
  const bool exact =
      rest.size() == 5 && rest.front() == '.' && rest.back() == 'Z' &&
      std::from_chars(rest.data() + 1, rest.data() + 4, milliseconds).ptr == rest.data() + 4;
  if (!exact && rest != "Z") return 0;
  return std::int64_t{timegm(&parts)} * 1000 + milliseconds;
}

std::string collective_text(const Json& json) {
  const auto found = json.find("collective");
  if (found == json.end() || !found->is_object()) return {};
  std::vector<std::string> missing;
  if (const auto ranks = found->find("missing_ranks"); ranks != found->end() && ranks->is_array()) {
    for (const auto& rank : *ranks) {
      if (rank.is_number_integer()) missing.push_back(rank.dump());
    }
  }
  auto text = base::format("{} number {} of process group '{}'", text_of(*found, "operation"),
                           number_of(*found, "number").value_or(0), text_of(*found, "group"));
  if (!missing.empty()) text += base::format(", missing ranks: {}", base::join(missing, ", "));
  return text;
}

/// Lines of a library's diagnosis, limited in number.
std::vector<std::string> account_in(const Json& json) {
  constexpr std::size_t most_lines = 40;
  std::vector<std::string> account;
  const auto collective = json.find("collective");
  if (collective == json.end() || !collective->is_object()) return account;
  const auto lines = collective->find("account");
  if (lines == collective->end() || !lines->is_array()) return account;
  for (const auto& line : *lines) {
    if (line.is_string() && account.size() < most_lines) account.push_back(line);
  }
  return account;
}

void read_failure(Postmortem& postmortem) {
  const auto path = postmortem.run / "failure.json";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const auto json = base::read_json_file(path, base::ExitCode::usage, largest_small_file);
  if (!json.ok() || !json->is_object()) {
    postmortem.notes.push_back(json.ok() ? "failure.json is no object" : json.failure().text);
    return;
  }
  FirstCause cause;
  cause.text = text_of(*json, "cause");
  cause.rank = small_number(*json, "first_failing_rank");
  cause.task = small_number(*json, "first_failing_task");
  cause.host = text_of(*json, "host");
  cause.time_ms = time_of(text_of(*json, "time"));
  cause.log = text_of(*json, "log");
  cause.collective = collective_text(*json);
  cause.account = account_in(*json);
  postmortem.exit_code = small_number(*json, "exit_code");
  postmortem.cause = std::move(cause);
  postmortem.ending = Ending::failed;
}

/// Progress, and the recorded end of the run, from metrics.jsonl.
void read_metrics(Postmortem& postmortem) {
  const auto text = base::read_text_file(postmortem.run / "metrics.jsonl");
  if (!text.ok()) {
    postmortem.notes.emplace_back("no metrics.jsonl: no step was begun");
    return;
  }
  std::string last_event;
  for (std::string_view rest = *text; !rest.empty();) {
    const auto end = rest.find('\n');
    const auto line = base::parse_json(rest.substr(0, end), "metrics.jsonl");
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (!line.ok() || !line->is_object()) continue;
    const auto kind = text_of(*line, "kind");
    if (kind == "train") {
      postmortem.last_step = number_of(*line, "step").value_or(postmortem.last_step);
      const auto loss = line->find("loss");
      if (loss != line->end() && loss->is_number()) postmortem.last_loss = loss->get<double>();
    }
    if (kind != "event") continue;
    last_event = text_of(*line, "event");
    if (last_event == "start") ++postmortem.starts;
  }
  if (postmortem.ending == Ending::failed) return;
  if (last_event == "done") postmortem.ending = Ending::finished;
  if (last_event == "stop") postmortem.ending = Ending::stopped;
}

std::vector<launch::TaskRecord> read_records(const Postmortem& postmortem, const Evidence& evidence,
                                             std::vector<std::string>& notes) {
  auto files = evidence.records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(postmortem.run / "log", error)) {
    const auto file = entry.path().filename().string();
    if (file.starts_with("tasks") && file.ends_with(".jsonl")) files.push_back(entry.path());
  }
  std::vector<launch::TaskRecord> records;
  // Duplicates: the plugin, a template and the user may each have copied the same record.
  std::set<std::string, std::less<>> seen;
  for (const auto& file : files) {
    const auto text = base::read_text_file(file, base::ExitCode::usage, largest_records);
    if (!text.ok()) {
      notes.push_back(text.failure().text);
      continue;
    }
    for (std::string_view rest = *text; !rest.empty();) {
      const auto end = rest.find('\n');
      const auto line = rest.substr(0, end);
      const auto record = launch::parse_record(line);
      const bool is_new = seen.emplace(line).second;
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (record.ok() && is_new) records.push_back(*record);
    }
  }
  return records;
}

/// Records of the last step of the last start, in the order of time.
void keep_last_start(std::vector<launch::TaskRecord>& records, const std::string& job) {
  std::erase_if(records, [&](const launch::TaskRecord& record) {
    return !job.empty() && base::format("{}.{}", record.job, record.step) != job;
  });
  std::uint32_t last = 0;
  for (const auto& record : records) last = std::max(last, record.restart);
  std::erase_if(records, [&](const launch::TaskRecord& record) { return record.restart != last; });
  std::stable_sort(records.begin(), records.end(), [](const auto& one, const auto& other) {
    return std::tie(one.time_ms, one.rank, one.process) <
           std::tie(other.time_ms, other.rank, other.process);
  });
  // Duplicates: the batch script may have gathered once more what the plugin has copied.
  records.erase(std::unique(records.begin(), records.end()), records.end());
}

bool went_wrong(const launch::TaskRecord& record) {
  const auto code = record.exit_code();
  return !code || (*code != 0 && *code != static_cast<int>(base::ExitCode::requeue));
}

/// Rank of a task, from "rank 4 is task 5 of srun in job 12.0" in the logs; the same number if no
/// log has such a line.
int rank_of(int task, const std::vector<LogLine>& lines) {
  for (const auto& line : lines) {
    const auto start = base::format("rank {} is task {} of ", line.rank, task);
    if (line.text.starts_with(start)) return line.rank;
  }
  return task;
}

/// First cause corrected by task records. Where the launcher kills all ranks because one has died,
/// a survivor may blame another that was killed before it. A node's record is written before the
/// launcher can notice the death: the oldest death of all, if it is older than failure.json's, is
/// the first.
void correct_by_records(Postmortem& postmortem, const std::vector<launch::TaskRecord>& records,
                        const std::vector<LogLine>& lines) {
  if (!postmortem.cause || postmortem.cause->time_ms == 0) return;
  const auto first = std::find_if(records.begin(), records.end(),
                                  [](const auto& record) { return record.signal().has_value(); });
  if (first == records.end() || first->time_ms >= postmortem.cause->time_ms) return;
  const int blamed = postmortem.cause->task.value_or(postmortem.cause->rank.value_or(-1));
  const bool at_once = std::any_of(first, records.end(), [&](const auto& record) {
    return record.time_ms == first->time_ms && static_cast<int>(record.rank) == blamed;
  });
  if (at_once) return;
  postmortem.notes.push_back(
      base::format("failure.json says otherwise: {}", postmortem.cause->text));
  FirstCause cause;
  cause.task = static_cast<int>(first->rank);
  cause.rank = rank_of(*cause.task, lines);
  cause.host = first->node;
  cause.time_ms = first->time_ms;
  cause.text = base::format("rank {} (process {} on {}) ended by {} before all others", *cause.rank,
                            first->process, first->node, launch::cause_text(*first));
  cause.log = (postmortem.run / "log" / base::format("r{:04}.txt", *cause.rank)).string();
  postmortem.cause = std::move(cause);
}

/// Details that the records add to the cause, or the cause itself where no rank could report one.
void use_records(Postmortem& postmortem, const std::vector<launch::TaskRecord>& records,
                 const std::vector<LogLine>& lines) {
  const auto first = std::find_if(records.begin(), records.end(), went_wrong);
  if (!postmortem.cause && postmortem.ending != Ending::finished &&
      postmortem.ending != Ending::stopped && first != records.end()) {
    postmortem.ending = Ending::failed;
    FirstCause cause;
    cause.text = base::format("task {} on {} ended by {}, and no rank said why", first->rank,
                              first->node, launch::cause_text(*first));
    cause.task = static_cast<int>(first->rank);
    cause.rank = rank_of(static_cast<int>(first->rank), lines);
    cause.host = first->node;
    cause.time_ms = first->time_ms;
    postmortem.cause = std::move(cause);
    postmortem.exit_code = first->exit_code();
  }
  // Slurm counts tasks; without reordering they are the ranks.
  int culprit = -1;
  if (postmortem.cause)
    culprit = postmortem.cause->task.value_or(postmortem.cause->rank.value_or(-1));
  for (const auto& record : records) {
    const auto end = launch::cause_text(record);
    if (postmortem.cause && culprit >= 0 && culprit == static_cast<int>(record.rank)) {
      postmortem.cause->end_of_task = end;
    } else if (postmortem.events.size() < most_events) {
      postmortem.events.push_back(
          {record.time_ms, base::format("task {} on {}", record.rank, record.node), end});
    }
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

base::Result<Postmortem> examine(const fs::path& run, const Evidence& evidence) {
  std::error_code error;
  const bool known =
      fs::exists(run / "config.resolved.conf", error) || fs::exists(run / "metrics.jsonl", error) ||
      fs::exists(run / "failure.json", error) || fs::is_directory(run / "log", error);
  if (!known) {
    return base::usage_failure(base::format(
        "'{}' is no run directory (it has no config.resolved.conf, metrics.jsonl, failure.json or "
        "log); name the folder that run.directory named",
        run.string()));
  }
  Postmortem postmortem;
  postmortem.run = run;
  postmortem.slurm = evidence.slurm;
  postmortem.job = job_of_run(run);
  read_failure(postmortem);
  read_metrics(postmortem);
  const auto lines = read_logs(run, Attempts::last, postmortem.notes);
  auto records = read_records(postmortem, evidence, postmortem.notes);
  // Records of a job are of an earlier start.
  if (ran_outside_jobs(lines)) records.clear();
  keep_last_start(records, postmortem.job);
  correct_by_records(postmortem, records, lines);
  use_records(postmortem, records, lines);
  use_logs(postmortem, lines);
  std::stable_sort(postmortem.events.begin(), postmortem.events.end(),
                   [](const auto& one, const auto& other) { return one.time_ms < other.time_ms; });
  refine_time(postmortem);
  try {
    const auto steps = checkpoint::list(checkpoint::checkpoints_of_run(run));
    if (!steps.empty()) postmortem.newest_checkpoint = steps.front().step;
  } catch (const base::Error& failed) {
    postmortem.notes.push_back(base::format("its checkpoints are not known: {}", failed.what()));
  }
  postmortem.advice = advice_for(postmortem);
  return postmortem;
}

}  // namespace trireme::postmortem
