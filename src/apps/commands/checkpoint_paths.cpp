// SPDX-License-Identifier: Apache-2.0
#include "apps/commands/checkpoint_paths.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"

namespace trireme::apps {

std::filesystem::path checkpoints_of(const std::filesystem::path& path) {
  auto inside = checkpoint::checkpoints_of_run(path);
  if (std::filesystem::is_directory(inside)) return inside;
  if (std::filesystem::is_directory(path)) return path;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' is no folder (a run folder or its checkpoints folder is needed)",
                   path.string()));
}

std::filesystem::path run_of(const std::filesystem::path& checkpoints) {
  const auto path = std::filesystem::absolute(checkpoints / ".").lexically_normal().parent_path();
  return path.filename() == "checkpoints" ? path.parent_path() : path;
}

}  // namespace trireme::apps
