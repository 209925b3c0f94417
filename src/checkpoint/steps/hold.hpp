// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include <filesystem>
#include <memory>

// Locks on manifests (fcntl, of open files) between readers of a step and the process that would
// remove it. Where a file system has none, or not for other nodes, a step that is removed under a
// reader ends the reader with an error.
namespace trireme::checkpoint {

/// Keeps the step while the result lives; null where it cannot.
std::shared_ptr<const base::File> hold_step(const std::filesystem::path& step_folder);

/// True if somebody holds it.
bool is_held(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
