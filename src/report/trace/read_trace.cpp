// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/text.hpp"
#include "trireme/report/trace.hpp"

#include <algorithm>

namespace trireme::report {
namespace {

namespace fs = std::filesystem;

struct Found {
  fs::path folder;
  config::StepRange steps;
  fs::file_time_type time;
};

/// Steps of a folder's name; nothing of other names, or of a trace that is being written.
std::optional<config::StepRange> steps_of(const fs::path& folder) {
  constexpr std::string_view prefix = "steps-";
  const auto name = folder.filename().string();
  if (name.rfind(prefix, 0) != 0) return std::nullopt;
  const auto ends = base::split(std::string_view(name).substr(prefix.size()), '-');
  if (ends.size() != 2) return std::nullopt;
  const auto steps = config::parse_step_range(base::format("{}..{}", ends[0], ends[1]));
  return steps ? std::optional(*steps) : std::nullopt;
}

std::vector<Found> traces_of(const fs::path& run) {
  std::vector<Found> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "trace", error)) {
    if (const auto steps = steps_of(entry.path())) {
      all.push_back({entry.path(), *steps, entry.last_write_time(error)});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto& one, const auto& other) { return one.time < other.time; });
  return all;
}

base::Result<Found> choose(const fs::path& run, const std::optional<config::StepRange>& steps) {
  const auto all = traces_of(run);
  if (all.empty()) {
    return base::usage_failure(base::format(
        "'{}' has no trace (a run records one when it is asked to); set train.profile = 100..102, "
        "or ask a run that goes on: trireme profile {} --steps 3",
        run.string(), base::shell_word(run.string())));
  }
  if (!steps) return all.back();
  for (const auto& found : all) {
    if (found.steps == *steps) return found;
  }
  std::vector<std::string> names;
  for (const auto& found : all) names.push_back(found.steps.text());
  return base::usage_failure(base::format("'{}' has no trace of steps {}; there are {}",
                                          run.string(), steps->text(), base::join(names, ", ")));
}

}  // namespace

std::vector<fs::path> trace_folders(const fs::path& run) {
  std::vector<fs::path> folders;
  for (const auto& found : traces_of(run)) folders.push_back(found.folder);
  return folders;
}

base::Result<RunTrace> read_trace(const fs::path& run,
                                  const std::optional<config::StepRange>& steps) {
  const auto found = choose(run, steps);
  if (!found) return found.failure();
  RunTrace trace{found->folder, found->steps, {}};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(found->folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.rfind("rank-", 0) != 0 || entry.path().extension() != ".json") continue;
    auto rank = telemetry::read_rank_trace(entry.path());
    if (!rank) return rank.failure();
    trace.ranks.push_back(std::move(*rank));
  }
  if (trace.ranks.empty()) {
    return base::usage_failure(
        base::format("'{}' holds no file of a rank; record it again", found->folder.string()));
  }
  std::sort(trace.ranks.begin(), trace.ranks.end(),
            [](const auto& one, const auto& other) { return one.rank < other.rank; });
  return trace;
}

}  // namespace trireme::report
