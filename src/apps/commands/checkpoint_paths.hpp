// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace trireme::apps {

/// Meaning of the PATH of commands on all steps of a run.
inline constexpr const char* run_and_folder = "Run folder, or its checkpoints folder";

/// Folder that holds the steps of a run: a run's, or the folder itself. Throws Error (checkpoint).
std::filesystem::path checkpoints_of(const std::filesystem::path& path);

/// Run of such a folder, which is the path to lock. A folder of steps without a run is its own.
std::filesystem::path run_of(const std::filesystem::path& path);

}  // namespace trireme::apps
