// SPDX-License-Identifier: Apache-2.0
#include "apps/commands/checkpoint_paths.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/store/object_store.hpp"

namespace trireme::apps {

std::filesystem::path checkpoints_of(const std::filesystem::path& path) {
  if (auto found = checkpoint::find_checkpoints(path)) return *std::move(found);
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' is no folder (a run folder or its checkpoints folder is needed)",
                   path.string()));
}

namespace {

/// Without dots and a slash at its end.
std::filesystem::path whole(const std::filesystem::path& path) {
  return base::absolute(path / ".").lexically_normal().parent_path();
}

/// The folder `checkpoints` of another run than the one that its claim names: both were copied.
bool is_copied(const std::filesystem::path& checkpoints, const std::filesystem::path& run) {
  std::error_code ignored;
  const auto own = checkpoint::checkpoints_of_run(run);
  return !store::is_url(checkpoints) && !store::is_url(own) &&
         whole(checkpoints).filename() == "checkpoints" &&
         !std::filesystem::equivalent(own, checkpoints, ignored);
}

}  // namespace

std::filesystem::path run_of(const std::filesystem::path& path) {
  if (auto run = checkpoint::run_of_checkpoints(path); run && !is_copied(path, *run)) {
    if (base::is_directory(*run)) return *std::move(run);
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("'{}' has the checkpoints of run '{}', which is not here (nothing "
                     "is removed without its lock); prune where it is",
                     path.string(), run->string()));
  }
  if (store::is_url(path)) {
    throw base::Error(base::ExitCode::usage,
                      base::format("'{}' has no run's checkpoints (nothing is removed without its "
                                   "lock); name a run folder or its checkpoint.directory",
                                   path.string()));
  }
  const auto folder = whole(path);
  return folder.filename() == "checkpoints" ? folder.parent_path() : folder;
}

}  // namespace trireme::apps
