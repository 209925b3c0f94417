// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

// The commit of a step (docs/decisions/0027): files at a place that does not count yet, the
// manifest, and then the name that counts; in an object store the manifest is what counts. All
// throw Error (checkpoint).
namespace trireme::checkpoint {

/// Where the files of a save go: STEP.tmp-ID, which gets the step's name, or in an object store
/// STEP/ID, which no other save writes to, so that a step that is there stays whole until another
/// manifest takes the place of its own.
struct Place {
  std::filesystem::path path;
  /// An object store has the step already.
  bool has_step = false;
  /// The manifest that names these files counts, or may: an answer was lost.
  bool may_count = false;
};

/// Folder of the files in the step's, for its manifest: ID, or empty.
std::string folder_of_files(const Place& place);
/// Path of a save with a temporary_name() below `checkpoints`.
std::filesystem::path path_of_save(const std::filesystem::path& checkpoints, std::string_view name);
/// Makes it, with the folders above it; an object store needs none, and is not asked.
Place make_place(FileSystem& files, const std::filesystem::path& path);
/// Whether an object store has the step already: asked by who commits, before it writes.
void look_for_step(Place& place);
/// Removes what a save that has failed has left, unless it may count; a failure is logged.
void remove_place(FileSystem& files, const Place& place);

/// Writes the manifest and reads it as every reader does: a step that cannot be loaded must not
/// replace one that can. Then it calls `before_commit`, unless that is empty, and lets the step
/// count. Returns its folder. A step that another save has committed to an object store meanwhile
/// is that save's.
std::filesystem::path commit(FileSystem& files, Place& place, std::int64_t step,
                             std::string_view manifest, const std::function<void()>& before_commit);

}  // namespace trireme::checkpoint
