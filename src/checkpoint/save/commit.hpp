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

/// Where the files of a save go.
struct Place {
  std::filesystem::path path;
  /// The step is there already, in an object store: each object is replaced at once by one that is
  /// alike, if its values are; else the manifest that is there does not match it, which loads tell.
  bool has_step = false;
};

/// Path of a save with a temporary_name() below `checkpoints`.
std::filesystem::path path_of_save(const std::filesystem::path& checkpoints, std::string_view name);
/// Makes it, with the folders above it; an object store needs none, and is not asked.
Place make_place(FileSystem& files, const std::filesystem::path& path);
/// Whether an object store has the step already: asked by who commits, before it writes.
void look_for_step(Place& place);
/// Removes what a save that has failed has left; a failure is logged.
void remove_place(FileSystem& files, const Place& place);

/// Writes the manifest and reads it as every reader does: a step that cannot be loaded must not
/// replace one that can. Then it calls `before_commit`, unless that is empty, and lets the step
/// count. Returns its folder. A step that another save has committed to an object store meanwhile
/// is that save's: the place has it then.
std::filesystem::path commit(FileSystem& files, Place& place, std::int64_t step,
                             std::string_view manifest, const std::function<void()>& before_commit);

}  // namespace trireme::checkpoint
