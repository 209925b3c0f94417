// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/save.hpp"

#include <filesystem>
#include <functional>

namespace trireme::checkpoint {

/// Name of the file that a rank writes: "shard-00012.h5".
std::string shard_name(std::size_t rank);

/// Writes and syncs the file of a rank: structure by HDF5, payload beside it, and behind both the
/// checksums of every byte before. `beside` is called while the payload is written, by a thread
/// that alone uses HDF5 then. Throws Error (checkpoint).
StoredFile write_shard(const SaveOptions& options, const std::filesystem::path& folder,
                       const SaveRequest& request, std::size_t rank,
                       const std::function<void()>& beside = nullptr);

/// The same from the file of a committed step, each block verified.
StoredFile copy_shard(const SaveOptions& options, const std::filesystem::path& folder,
                      const std::filesystem::path& from, std::size_t rank);
/// Copies file number `file` of a step, with its checksums, to another folder. Throws Error
/// (checkpoint), also for a block that does not match.
void copy_file(const SaveOptions& options, const std::filesystem::path& folder,
               const std::filesystem::path& from, const Manifest& manifest, std::size_t file);

/// True if master.h5 can show these contents: the virtual datasets of large runs would have
/// hundreds of thousands of sources, and their writing would hold up the save.
bool has_master(const Contents& contents);
/// Writes and syncs FOLDER/master.h5: every tensor at its global shape, virtually. For people and
/// tools; nothing here ever reads it. `manifest` holds the tensors and the shards' names already.
/// Throws Error (checkpoint).
StoredFile write_master(const SaveOptions& options, const std::filesystem::path& folder,
                        const Manifest& manifest);

}  // namespace trireme::checkpoint
