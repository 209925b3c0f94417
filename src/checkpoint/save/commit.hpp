// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

// The commit of a step (docs/decisions/0027): a folder under a temporary name, the manifest in it,
// the name that counts. All throw Error (checkpoint).
namespace trireme::checkpoint {

/// CHECKPOINTS/NAME, a temporary_name(), made together with the folders above it.
std::filesystem::path make_temporary_folder(FileSystem& files,
                                            const std::filesystem::path& checkpoints,
                                            const std::string& name);

/// Puts manifest.json with this text into the folder and reads it as every reader does: a step that
/// cannot be loaded must not replace one that can.
void write_manifest(FileSystem& files, const std::filesystem::path& temporary,
                    std::string_view text);

/// Renames the folder to step-N: the moment at which the checkpoint counts.
std::filesystem::path commit(FileSystem& files, const std::filesystem::path& temporary,
                             std::int64_t step);

}  // namespace trireme::checkpoint
