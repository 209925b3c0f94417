// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <filesystem>
#include <optional>
#include <string>

/// Where the checkpoints of a run are.
namespace trireme::checkpoint {

/// RUN/checkpoints, or the folder or URL that RUN/checkpoints.location names
/// (checkpoint.directory).
std::filesystem::path checkpoints_of_run(const std::filesystem::path& run);

/// Lets a run keep its checkpoints in `directory` from here on, a folder or a URL; empty:
/// RUN/checkpoints. Notes that in the run, and the run in the directory. Called by the one process
/// that holds the run. Returns what checkpoints_of_run() does afterwards. Throws Error: the run has
/// steps elsewhere; the directory is another run's, or that of a run of which this one is a copy
/// (usage); it cannot be written (checkpoint). A run that was moved takes its directory with it.
std::filesystem::path choose_checkpoints(const std::filesystem::path& run,
                                         const std::string& directory);

/// The refusal of choose_checkpoints(), as far as it can be told without writing. Asks an object
/// store only where the run has its steps in one.
base::Status check_checkpoints(const std::filesystem::path& run, const std::string& directory);

/// Throws Error (launch) if another folder has taken the directory over since the run chose it: a
/// copy on a node that does not see the run. Asked before a step is committed.
void check_claim(const std::filesystem::path& directory, const std::filesystem::path& run);

/// Throws Error (usage) if the directory, where the run's checkpoints are, is another folder's: the
/// run is a copy, or was moved and not started since. Asked before a command removes steps or tags.
void check_may_remove(const std::filesystem::path& directory, const std::filesystem::path& run);

/// Run that has chosen the directory; nothing if none has.
std::optional<std::filesystem::path> run_of_checkpoints(const std::filesystem::path& directory);

/// Id that tells a run from one that was in the same folder before it; made with the first call.
std::string run_id(const std::filesystem::path& run);

/// True for a step: it has a manifest.
bool is_step(const std::filesystem::path& path);
/// False for a step that was removed: its folder is gone, or its manifest from an object store.
bool is_there(const std::filesystem::path& step);
/// Where the steps are that a path on the command line names: a run's, or its own. Nothing if it is
/// neither a run nor a folder.
std::optional<std::filesystem::path> find_checkpoints(const std::filesystem::path& path);

}  // namespace trireme::checkpoint
