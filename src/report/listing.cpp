// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/listing.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utc.hpp"

#include "figure_texts.hpp"
#include "number_or_null.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace trireme::report {
namespace {

namespace fs = std::filesystem;
using base::format;

constexpr int deepest = 12;
constexpr std::size_t most_folders = 100'000;
constexpr std::size_t most_runs = 20'000;
constexpr std::size_t averaged_steps = 20;

/// Tokens over time of the last steps that one start has made: the next may have another layout.
double recent_rate(const std::vector<telemetry::StepLine>& steps) {
  double tokens = 0;
  double seconds = 0;
  for (auto at = steps.size() - std::min(steps.size(), averaged_steps); at < steps.size(); ++at) {
    const auto& step = steps[at];
    if (step.restart != steps.back().restart) continue;
    if (std::isnan(step.step_ms) || std::isnan(step.tokens_per_second)) continue;
    tokens += step.tokens_per_second * step.step_ms / 1e3;
    seconds += step.step_ms / 1e3;
  }
  return seconds > 0 ? tokens / seconds : telemetry::absent;
}

/// Time of change, for records of versions that wrote no times.
std::int64_t changed_ms(const fs::path& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::milliseconds>(system.time_since_epoch()).count();
}

ListedRun list_one(const fs::path& path, std::string name, std::vector<std::string>& notes) {
  ListedRun run;
  run.path = path;
  run.name = std::move(name);
  telemetry::RecordReader reader(telemetry::record_of_run(path),
                                 telemetry::RecordReader::From::end);
  if (const auto read = reader.advance(); !read.ok()) notes.push_back(read.failure().text);
  const auto& record = reader.record();
  run.state = state_of(path, record);
  run.step = record.step;
  if (!record.steps.empty()) {
    run.loss = record.steps.back().loss;
    run.tokens_per_second = recent_rate(record.steps);
  }
  RunView view;
  view.values = values_of(path);
  run.planned_steps = view.number("train.steps", 0);
  run.last_time_ms =
      record.last_time_ms != 0 ? record.last_time_ms : changed_ms(telemetry::record_of_run(path));
  return run;
}

/// Folders that are still to be looked at, and what was found.
struct Search {
  std::size_t folders = 0;
  std::vector<fs::path> runs = {};
  std::vector<std::string> notes = {};

  void look_at(const fs::path& folder, int depth) {
    if (runs.size() == most_runs || folders++ == most_folders) return;
    if (postmortem::is_run(folder)) {
      runs.push_back(folder);
      return;
    }
    if (depth == deepest) return;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      std::error_code ignored;
      const bool hidden = entry.path().filename().string().starts_with('.');
      if (hidden || entry.is_symlink(ignored) || !entry.is_directory(ignored)) continue;
      look_at(entry.path(), depth + 1);
    }
    if (error) notes.push_back(format("cannot read '{}': {}", folder.string(), error.message()));
  }
};

}  // namespace

std::string age_text(std::int64_t milliseconds) {
  const auto seconds = std::max<std::int64_t>(milliseconds, 0) / 1000;
  if (seconds < 60) return format("{} s", seconds);
  if (seconds < 3600) return format("{} min", seconds / 60);
  if (seconds < 48 * 3600) return format("{} h", seconds / 3600);
  return format("{} d", seconds / 86400);
}

base::Result<Listing> list_runs(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return base::usage_failure(
        format("'{}' is no folder (runs are looked for in it and below); name one that is",
               folder.string()));
  }
  Search search;
  search.look_at(folder, 0);
  Listing listing;
  listing.notes = std::move(search.notes);
  if (search.runs.size() == most_runs || search.folders > most_folders) {
    listing.notes.push_back(
        format("only {} runs in {} folders are listed; name a folder further down",
               search.runs.size(), most_folders));
  }
  for (const auto& run : search.runs) {
    listing.runs.push_back(list_one(run, run.lexically_relative(folder).string(), listing.notes));
  }
  std::stable_sort(listing.runs.begin(), listing.runs.end(),
                   [](const auto& one, const auto& other) {
                     const bool one_runs = one.state == State::running;
                     const bool other_runs = other.state == State::running;
                     if (one_runs != other_runs) return one_runs;
                     if (one.last_time_ms != other.last_time_ms)
                       return one.last_time_ms > other.last_time_ms;
                     return one.name < other.name;
                   });
  return listing;
}

std::string text_of(const std::vector<ListedRun>& runs, std::size_t columns, std::int64_t now_ms) {
  std::vector<std::vector<std::string>> rows{{"run", "state", "step", "loss", "tok/s", "age"}};
  for (const auto& run : runs) {
    rows.push_back(
        {base::printable(run.name), name(run.state),
         run.step > 0 ? steps_text(run.step, run.planned_steps) : "-",
         std::isnan(run.loss) ? "-" : base::fixed_text(run.loss, 4),
         std::isnan(run.tokens_per_second) ? "-" : format("{:.0f}", run.tokens_per_second),
         run.last_time_ms == 0 ? "-" : age_text(now_ms - run.last_time_ms)});
  }
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t at = 0; at < row.size(); ++at) {
      widths[at] = std::max(widths[at], base::width_of(row[at]));
    }
  }
  std::size_t others = 0;
  for (std::size_t at = 1; at < widths.size(); ++at) others += 2 + widths[at];
  constexpr std::size_t least_name = 12;
  widths[0] = std::min(widths[0], std::max(least_name, columns - std::min(columns, others)));
  std::string text;
  for (const auto& row : rows) {
    text += base::filled(base::cut_to(row[0], widths[0]), widths[0]) + "  " +
            base::filled(row[1], widths[1]);
    for (std::size_t at = 2; at < row.size(); ++at)
      text += "  " + base::filled_left(row[at], widths[at]);
    text += "\n";
  }
  return text;
}

base::Json to_json(const ListedRun& run) {
  base::Json json{{"run", run.name}, {"path", run.path.string()}, {"state", name(run.state)}};
  json["step"] = run.step;
  json["steps"] = run.planned_steps > 0 ? base::Json(run.planned_steps) : base::Json(nullptr);
  json["loss"] = number_or_null(run.loss);
  json["tokens_per_second"] = number_or_null(run.tokens_per_second);
  json["time"] = nullptr;
  if (run.last_time_ms != 0) {
    json["time"] = base::utc_text({run.last_time_ms / 1000, (run.last_time_ms % 1000) * 1'000'000});
  }
  return json;
}

}  // namespace trireme::report
