// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/folders.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/objects/objects.hpp"
#include "checkpoint/steps/hold.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Entry {
  fs::path path;
  FolderName name;
};

/// The same in an object store, where a step is committed by its manifest.
std::vector<Entry> entries_of_store(const fs::path& checkpoints) {
  std::vector<Entry> entries;
  for (const auto& folder : objects::folders_in(checkpoints)) {
    auto name = parse_folder_name(folder);
    if (!name || name->kind != FolderKind::committed) continue;
    const auto path = checkpoints / folder;
    if (!objects::has_manifest(path)) name->kind = FolderKind::temporary;
    entries.push_back({path, *name});
  }
  return entries;
}

/// Real folders whose names follow the pattern, in any order.
std::vector<Entry> entries_of(const fs::path& checkpoints) {
  if (store::is_url(checkpoints)) return entries_of_store(checkpoints);
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(checkpoints, error), end; !error && at != end;
       at.increment(error)) {
    const auto name = parse_folder_name(at->path().filename().string());
    std::error_code ignored;
    if (name && fs::is_directory(at->symlink_status(ignored)))
      entries.push_back({at->path(), *name});
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_storage_error("list", checkpoints, error.value());
  }
  return entries;
}

fs::file_time_type last_touched(const fs::path& folder) {
  auto newest = fs::last_write_time(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    newest = std::max(newest, entry.last_write_time());
  }
  return newest;
}

bool is_garbage(const Entry& entry, const std::set<std::int64_t>& committed,
                std::chrono::seconds idle) {
  if (entry.name.kind == FolderKind::committed) return false;
  if (store::is_url(entry.path)) {
    return !objects::is_young(entry.path) && !objects::has_manifest(entry.path);
  }
  // A step set aside is the step itself until its successor has the name.
  if (entry.name.kind == FolderKind::replaced && !committed.contains(entry.name.step)) return false;
  try {
    return fs::file_time_type::clock::now() - last_touched(entry.path) >= idle;
  } catch (const fs::filesystem_error&) {
    return false;  // it has changed meanwhile: another process uses it
  }
}

/// Removes the folders in a committed step's that its manifest does not name, an hour after the
/// last change of the step: who reads it may have an earlier manifest. Returns them.
std::vector<fs::path> remove_unnamed(const fs::path& step) {
  std::vector<fs::path> removed;
  const auto folders = objects::unnamed_folders(step);
  if (folders.empty() || objects::is_young(step)) return removed;
  for (const auto& folder : folders) {
    removed.push_back(folder.empty() ? step : step / folder);
    if (folder.empty()) {
      objects::remove_files_beside_manifest(step);
    } else {
      objects::remove_folder(removed.back());
    }
  }
  return removed;
}

std::string first_reason(const VerifyReport& report) {
  const auto more = report.damages.size() - 1;
  return report.damages.front().text + (more > 0 ? base::format(" (and {} more)", more) : "");
}

}  // namespace

std::vector<StepFolder> list(const fs::path& checkpoints) {
  const auto entries = entries_of(checkpoints);
  std::set<std::int64_t> committed;
  for (const auto& entry : entries) {
    if (entry.name.kind == FolderKind::committed) committed.insert(entry.name.step);
  }
  std::vector<StepFolder> steps;
  for (const auto& [path, name] : entries) {
    if (name.kind == FolderKind::committed ||
        (name.kind == FolderKind::replaced && !committed.contains(name.step))) {
      steps.push_back({path, name.step});
    }
  }
  std::sort(steps.begin(), steps.end(), [](const StepFolder& a, const StepFolder& b) {
    return std::tie(a.step, a.path) > std::tie(b.step, b.path);
  });
  return steps;
}

std::vector<StepFolder> list_uncommitted(const fs::path& checkpoints) {
  std::vector<StepFolder> found;
  for (const auto& [path, name] : entries_of(checkpoints)) {
    if (name.kind == FolderKind::temporary) found.push_back({path, name.step});
  }
  return found;
}

base::Result<StepFolder> newest_verified(const fs::path& checkpoints, VerifyLevel level) {
  auto steps = list(checkpoints);
  std::string reasons;
  for (auto& step : steps) {
    step.hold = hold_step(step.path);
    const auto report = verify(step.path, level);
    if (report.good()) return step;
    // Removed before it was held, because there are newer ones.
    if (!is_there(step.path)) return newest_verified(checkpoints, level);
    base::log::local::warning("checkpoint", "{} does not verify: {}", step.path.filename().string(),
                              first_reason(report));
    reasons += base::format("\n  {}: {}", step.path.filename().string(), first_reason(report));
  }
  if (steps.empty()) {
    return base::Failure{base::ExitCode::checkpoint,
                         base::format("no checkpoint in '{}' (folders step-NNNNNNNNN are looked "
                                      "for); train first, or name another folder",
                                      checkpoints.string())};
  }
  return base::Failure{base::ExitCode::checkpoint,
                       base::format("none of the {} steps in '{}' verifies; restore one from a "
                                    "copy:{}",
                                    steps.size(), checkpoints.string(), reasons)};
}

base::Result<StepFolder> find_step(const fs::path& path, VerifyLevel level) {
  if (is_step(path)) {
    auto hold = hold_step(path);
    const auto report = verify(path, level);
    if (!report.good()) return base::Failure{base::ExitCode::checkpoint, first_reason(report)};
    const auto manifest = read_manifest(path);
    if (!manifest) return manifest.failure();
    return StepFolder{path, manifest->step, std::move(hold)};
  }
  if (const auto checkpoints = find_checkpoints(path)) return newest_verified(*checkpoints, level);
  return base::Failure{
      base::ExitCode::checkpoint,
      base::format("'{}' is no checkpoint (a step folder with manifest.json, a run folder or its "
                   "checkpoints folder is needed)",
                   path.string())};
}

std::vector<fs::path> collect_garbage(const fs::path& checkpoints, std::chrono::seconds idle,
                                      FileSystem& files) {
  const auto entries = entries_of(checkpoints);
  std::set<std::int64_t> committed;
  for (const auto& entry : entries) {
    if (entry.name.kind == FolderKind::committed) committed.insert(entry.name.step);
  }
  std::vector<fs::path> removed;
  for (const auto& entry : entries) {
    if (store::is_url(entry.path) && entry.name.kind == FolderKind::committed) {
      const auto unnamed = remove_unnamed(entry.path);
      removed.insert(removed.end(), unnamed.begin(), unnamed.end());
    }
    if (!is_garbage(entry, committed, idle)) continue;
    if (store::is_url(entry.path)) {
      objects::remove_step(entry.path);
    } else if (files.remove_folder(entry.path) != 0) {
      throw_storage_error("remove", entry.path, errno);
    }
    removed.push_back(entry.path);
  }
  return removed;
}

}  // namespace trireme::checkpoint
