#pragma once

#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <filesystem>

namespace trireme::checkpoint {

constexpr const char* master_name = "master.h5";

/// Writes and syncs master.h5: every tensor at its global shape, virtually. For people and
/// tools; nothing here ever reads it. `manifest` holds the shards and tensors already; the boxes
/// of each file are given in the order in which its writer placed them.
StoredFile write_master(FileSystem& files, const std::filesystem::path& folder,
                        const Manifest& manifest);

}  // namespace trireme::checkpoint
