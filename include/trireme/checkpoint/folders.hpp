// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// A committed step of a run.
struct StepFolder {
  std::filesystem::path path;
  std::int64_t step = 0;
};

/// RUN/checkpoints.
std::filesystem::path checkpoints_of_run(const std::filesystem::path& run);
/// "step-000001200".
std::string step_folder_name(std::int64_t step);

/// Folders named as committed steps, newest first; nothing is opened. Empty when the folder
/// does not exist.
std::vector<StepFolder> list(const std::filesystem::path& checkpoints);

enum class VerifyLevel {
  quick,  ///< all of the manifest; the size of every file
  full,   ///< also every byte of every file against its checksum
};

/// Something wrong with a step folder.
struct Damage {
  std::string file;
  std::uint64_t begin = 0;  ///< byte range in the file; empty for the whole file
  std::uint64_t end = 0;
  std::vector<std::string> tensors;  ///< tensors with elements in that range
  std::string text;                  ///< all of the above in words, with the remedy
};
struct VerifyReport {
  std::filesystem::path folder;
  std::vector<Damage> damages;
  std::uint64_t checked_bytes = 0;
  bool good() const { return damages.empty(); }
};
VerifyReport verify(const std::filesystem::path& step_folder, VerifyLevel level, int threads = 0);

/// Newest to oldest, the first step that verifies; what does not is named in the log. Failures
/// (checkpoint): there is no step; none verifies, each with its reason.
base::Result<StepFolder> newest_verified(const std::filesystem::path& checkpoints,
                                         VerifyLevel level = VerifyLevel::full);

/// Step that a path on the command line names: a step folder itself; a run folder or its
/// checkpoints folder (then its newest verified step). Failures name the path that was searched.
base::Result<StepFolder> find_step(const std::filesystem::path& path,
                                   VerifyLevel level = VerifyLevel::quick);

/// Removes old steps but keeps the `keep_last` newest that verify (quickly); at least one. Steps
/// that do not verify are not counted, and removed only when older than all those kept. The step
/// `current`, which a run has just saved or loaded, stays in any case, and those above it are
/// neither touched nor counted: the run resumed before them because they are damaged. Returns the
/// removed folders. Throws Error (checkpoint).
std::vector<std::filesystem::path> prune(const std::filesystem::path& checkpoints, int keep_last,
                                         std::optional<std::int64_t> current = {});

/// Removes the temporary folders of saves that never committed and that have not changed for
/// `idle`. Returns the removed folders.
std::vector<std::filesystem::path> collect_garbage(const std::filesystem::path& checkpoints,
                                                   std::chrono::seconds idle);

/// Content of a step, for people and for programs.
base::Json inspect_json(const Manifest& manifest);
std::string inspect_text(const Manifest& manifest);

}  // namespace trireme::checkpoint
