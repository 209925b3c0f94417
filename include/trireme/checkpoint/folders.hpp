// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/place.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// A committed step of a run.
struct StepFolder {
  std::filesystem::path path;
  std::int64_t step = 0;
  /// While it lives, prune() leaves the step alone, where the file system has locks. Of steps that
  /// were found to be read.
  std::shared_ptr<const base::File> hold = {};
};

/// "step-000001200".
std::string step_folder_name(std::int64_t step);

/// Folders named as committed steps, newest first; nothing is opened. Empty when the folder
/// does not exist.
std::vector<StepFolder> list(const std::filesystem::path& checkpoints);

/// Folders of saves that are not committed: being written, or left by a save that was killed.
std::vector<StepFolder> list_uncommitted(const std::filesystem::path& checkpoints);

enum class VerifyLevel {
  quick,  ///< all of the manifest; the size of every file
  full,   ///< also every byte of every file against its checksum
  deep,   ///< also each value: HDF5 reads what a load reads, and all are finite
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
  /// The parts of a good step that a key does not vouch for; empty: none.
  std::string not_covered = {};
  bool good() const { return damages.empty(); }
};
/// With a key a manifest that is not signed with it is damage.
VerifyReport verify(const std::filesystem::path& step_folder, VerifyLevel level, int threads = 0,
                    std::string_view key = {});

/// Newest to oldest, the first step that verifies, held; what does not is named in the log.
/// Failures (checkpoint): there is no step; none verifies, each with its reason.
base::Result<StepFolder> newest_verified(const std::filesystem::path& checkpoints,
                                         VerifyLevel level = VerifyLevel::full);

/// Step that a path on the command line names, held: a step folder itself; a run folder or its
/// checkpoints folder (then its newest verified step). Failures name the path that was searched.
base::Result<StepFolder> find_step(const std::filesystem::path& path,
                                   VerifyLevel level = VerifyLevel::quick);

/// Removes the temporary folders of saves that never committed and that have not changed for
/// `idle`, in an object store for an hour; there, too, what such saves and replaced ones have left
/// in the folders of committed steps. Returns the removed folders.
std::vector<std::filesystem::path> collect_garbage(const std::filesystem::path& checkpoints,
                                                   std::chrono::seconds idle,
                                                   FileSystem& files = FileSystem::system());

/// Content of a step, for people and for programs.
base::Json inspect_json(const Manifest& manifest);
std::string inspect_text(const Manifest& manifest);

}  // namespace trireme::checkpoint
