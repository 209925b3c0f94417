// SPDX-License-Identifier: Apache-2.0
#include "task_evidence.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/record/failure.hpp"
#include "trireme/record/task_record.hpp"

#include "start_lines.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_records = std::size_t{64} << 20;

std::vector<record::TaskRecord> read_records(Postmortem& postmortem, const Evidence& evidence) {
  auto files = evidence.records;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(postmortem.run / "log", error)) {
    const auto file = entry.path().filename().string();
    if (file.starts_with("tasks") && file.ends_with(".jsonl")) files.push_back(entry.path());
  }
  std::vector<record::TaskRecord> records;
  // Duplicates: the plugin, a template and the user may each have copied the same record.
  std::set<std::string, std::less<>> seen;
  for (const auto& file : files) {
    const auto text = base::read_text_file(file, base::ExitCode::usage, largest_records);
    if (!text.ok()) {
      postmortem.notes.push_back(text.failure().text);
      continue;
    }
    for (std::string_view rest = *text; !rest.empty();) {
      const auto end = rest.find('\n');
      const auto line = rest.substr(0, end);
      const auto record = record::parse_record(line);
      const bool is_new = seen.emplace(line).second;
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
      if (record.ok() && is_new) records.push_back(*record);
    }
  }
  return records;
}

/// Records of the last step of the last start, in the order of time.
void keep_last_start(std::vector<record::TaskRecord>& records, const std::string& job) {
  std::erase_if(records, [&](const record::TaskRecord& record) {
    return !job.empty() && base::format("{}.{}", record.job, record.step) != job;
  });
  std::uint32_t last = 0;
  for (const auto& record : records) last = std::max(last, record.restart);
  std::erase_if(records, [&](const record::TaskRecord& record) { return record.restart != last; });
  std::stable_sort(records.begin(), records.end(), [](const auto& one, const auto& other) {
    return std::tie(one.time_ms, one.rank, one.process) <
           std::tie(other.time_ms, other.rank, other.process);
  });
  // Duplicates: the batch script may have gathered once more what the plugin has copied.
  records.erase(std::unique(records.begin(), records.end()), records.end());
}

bool went_wrong(const record::TaskRecord& record) {
  const auto code = record.exit_code();
  return !code || (*code != 0 && *code != static_cast<int>(base::ExitCode::requeue));
}

/// Rank of a task; the same number if no log says which.
int rank_of(int task, const std::map<int, int>& ranks) {
  const auto found = ranks.find(task);
  return found == ranks.end() ? task : found->second;
}

/// First cause corrected by task records. Where the launcher kills all ranks because one has died,
/// a survivor may blame another that was killed before it. A node's record is written before the
/// launcher can notice the death: the oldest death of all, if it is older than failure.json's, is
/// the first.
void correct_by_records(Postmortem& postmortem, const std::vector<record::TaskRecord>& records,
                        const std::map<int, int>& ranks) {
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
  cause.rank = rank_of(*cause.task, ranks);
  cause.host = first->node;
  cause.time_ms = first->time_ms;
  cause.text = base::format("rank {} (process {} on {}) ended by {} before all others", *cause.rank,
                            first->process, first->node, record::cause_text(*first));
  cause.log = record::rank_log(postmortem.run, base::Rank(*cause.rank)).string();
  postmortem.cause = std::move(cause);
}

/// Details that the records add to the cause, or the cause itself where no rank could report one.
void use_records(Postmortem& postmortem, const std::vector<record::TaskRecord>& records,
                 const std::map<int, int>& ranks) {
  const auto first = std::find_if(records.begin(), records.end(), went_wrong);
  if (!postmortem.cause && postmortem.ending != Ending::finished &&
      postmortem.ending != Ending::stopped && first != records.end()) {
    postmortem.ending = Ending::failed;
    FirstCause cause;
    cause.text = base::format("task {} on {} ended by {}, and no rank said why", first->rank,
                              first->node, record::cause_text(*first));
    cause.task = static_cast<int>(first->rank);
    cause.rank = rank_of(static_cast<int>(first->rank), ranks);
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
    const auto end = record::cause_text(record);
    if (postmortem.cause && culprit >= 0 && culprit == static_cast<int>(record.rank)) {
      postmortem.cause->end_of_task = end;
    } else if (postmortem.events.size() < most_events) {
      postmortem.events.push_back(
          {record.time_ms, base::format("task {} on {}", record.rank, record.node), end});
    }
  }
}

}  // namespace

void use_task_records(Postmortem& postmortem, const Evidence& evidence,
                      const std::vector<LogLine>& lines) {
  const auto ranks = ranks_of_tasks(lines);
  auto records = read_records(postmortem, evidence);
  // Records of a job are of an earlier start.
  if (ran_outside_jobs(lines)) records.clear();
  keep_last_start(records, postmortem.job);
  correct_by_records(postmortem, records, ranks);
  use_records(postmortem, records, ranks);
}

}  // namespace trireme::postmortem
