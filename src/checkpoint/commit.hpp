#pragma once

#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstdint>
#include <filesystem>

namespace trireme::checkpoint {

/// RUN/checkpoints/step-N.tmp-<uuid>, made together with the folders above it.
std::filesystem::path make_temporary_folder(FileSystem& files,
                                            const std::filesystem::path& checkpoints,
                                            std::int64_t step);

/// Writes master.h5 and manifest.json into the folder and renames it to step-N: the moment at
/// which the checkpoint counts (docs/decisions/0027). `manifest` lacks master.h5 until then. Throws
/// Error (checkpoint).
std::filesystem::path commit(FileSystem& files, const std::filesystem::path& temporary,
                             Manifest& manifest);

}  // namespace trireme::checkpoint
