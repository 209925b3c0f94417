// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/folders.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// Which steps of a run stay when others are removed. Tagged ones always do.
struct Retention {
  /// Newest steps that verify (quickly); at least one.
  int keep_last = 1;
  /// Steps that are multiples of it; 0: no others.
  std::int64_t keep_every = 0;
  /// Steps with the lowest validation loss among those that have one.
  int keep_best = 0;
  /// The step that a run was loaded from: the newest of which every byte was read since it was
  /// written.
  std::optional<std::int64_t> loaded = {};
};

/// Steps that prune() would remove, newest first. Steps that do not verify are not counted, and
/// removed only when older than all of the `keep_last`. The step `current`, which a run has just
/// saved or loaded, stays in any case, and those above it are neither touched nor counted: the run
/// resumed before them because they are damaged.
std::vector<StepFolder> steps_to_prune(const std::filesystem::path& checkpoints,
                                       const Retention& retention,
                                       std::optional<std::int64_t> current = {});

/// Removes steps_to_prune(), but none that gets a tag meanwhile or is being read. Returns the
/// removed folders. Throws Error (checkpoint).
std::vector<std::filesystem::path> prune(const std::filesystem::path& checkpoints,
                                         const Retention& retention,
                                         std::optional<std::int64_t> current = {},
                                         FileSystem& files = FileSystem::system());

/// Name of a step: a symbolic link CHECKPOINTS/tags/NAME to its folder, which is a path of the step
/// for every command.
struct Tag {
  std::string name;
  std::int64_t step = 0;
};
/// Ascending by name. What is no link to a step is left out.
std::vector<Tag> tags(const std::filesystem::path& checkpoints);

enum class Retag { refuse, move };
/// Gives the step a tag. Names consist of up to 64 letters, digits and "._-" and begin with a
/// letter or digit. Failures: usage for such a name, checkpoint for a name that another step has
/// (unless it is moved), for a step that is gone, and those of the system.
base::Status add_tag(const StepFolder& step, std::string_view name, Retag retag = Retag::refuse);
/// Failures (checkpoint): there is no such tag, with the nearest; those of the system.
base::Status remove_tag(const std::filesystem::path& checkpoints, std::string_view name);

}  // namespace trireme::checkpoint
