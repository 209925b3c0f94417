// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/run_view.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/path.hpp"
#include "trireme/record/run_lock.hpp"

#include <algorithm>
#include <set>

namespace trireme::report {
namespace {

namespace fs = std::filesystem;
using postmortem::Ending;

constexpr std::size_t largest_configuration = std::size_t{1} << 20;
constexpr std::size_t largest_versions = std::size_t{1} << 20;
constexpr std::size_t largest_placement = std::size_t{16} << 20;

State state_by(Ending ending) {
  switch (ending) {
    case Ending::finished:
      return State::finished;
    case Ending::stopped:
      return State::stopped;
    case Ending::failed:
      return State::failed;
    case Ending::unknown:
      break;
  }
  return State::unknown;
}

std::optional<record::RunPlacement> placement_of(const fs::path& run) {
  const auto json =
      base::read_json_file(record::placement_of_run(run), base::ExitCode::usage, largest_placement);
  if (!json.ok()) return std::nullopt;
  auto placement = record::parse_placement(*json);
  return placement.ok() ? std::optional(std::move(placement).value()) : std::nullopt;
}

base::Result<RunView> read_run(const fs::path& path,
                               const postmortem::FindCheckpoints& checkpoints) {
  RunView run;
  run.path = path;
  run.name = folder_name(path);
  auto record = telemetry::read_record(path);
  if (!record.ok()) return record.failure();
  run.record = std::move(record).value();
  auto postmortem = postmortem::examine(path, {{}, {}, &run.record, checkpoints});
  if (!postmortem.ok()) return postmortem.failure();
  run.postmortem = std::move(postmortem).value();
  run.state = record::living_holder(path) ? State::running : state_by(run.postmortem.ending);
  run.earlier_failures = postmortem::earlier_failures(path);
  run.values = values_of(path);
  auto versions =
      base::read_json_file(path / "versions.json", base::ExitCode::usage, largest_versions);
  if (versions.ok() && versions->is_object()) run.versions = std::move(versions).value();
  run.placement = placement_of(path);
  return run;
}

}  // namespace

std::string folder_name(const fs::path& path) {
  return (base::absolute(path) / ".").lexically_normal().parent_path().filename().string();
}

std::vector<config::RecordedValue> values_of(const fs::path& run) {
  const auto configuration = base::read_text_file(run / "config.resolved.conf",
                                                  base::ExitCode::usage, largest_configuration);
  if (!configuration.ok()) return {};
  return config::recorded_values(*configuration);
}

const char* name(State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::finished:
      return "finished";
    case State::stopped:
      return "stopped";
    case State::failed:
      return "failed";
    case State::unknown:
      break;
  }
  return "unknown";
}

State state_of(const fs::path& run, const telemetry::RunRecord& record) {
  if (record::living_holder(run)) return State::running;
  const auto noted = postmortem::noted_ending(run, record.end);
  if (noted != Ending::unknown) return state_by(noted);
  const auto ending = postmortem::ending_of(run, {{}, {}, &record});
  return ending.ok() ? state_by(*ending) : State::unknown;
}

std::string RunView::value(std::string_view key) const {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [key](const auto& value) { return value.key == key; });
  return found == values.end() ? std::string{} : found->text;
}

std::int64_t RunView::number(std::string_view key, std::int64_t otherwise) const {
  return base::number_in<std::int64_t>(value(key)).value_or(otherwise);
}

base::Result<std::vector<RunView>> read_runs(std::span<const fs::path> paths,
                                             const postmortem::FindCheckpoints& checkpoints) {
  std::vector<RunView> runs;
  for (const auto& path : paths) {
    auto run = read_run(path, checkpoints);
    if (!run.ok()) return run.failure();
    runs.push_back(std::move(run).value());
  }
  std::multiset<std::string> names;
  for (const auto& run : runs) names.insert(run.name);
  for (auto& run : runs) {
    if (names.count(run.name) > 1) run.name = run.path.string();
  }
  return runs;
}

}  // namespace trireme::report
