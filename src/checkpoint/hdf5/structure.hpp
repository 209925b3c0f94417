// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"

#include <cstddef>
#include <filesystem>

/// The HDF5 structure of the files of a step.
namespace trireme::checkpoint::hdf5 {

/// Makes the file of a rank: for each element type of its shards one dataset without values
/// ("/f32"), which lies where the contents say, and a table of what it holds ("/f32_table"). Throws
/// Error (checkpoint), after the written file was read back.
void create_shard(const std::filesystem::path& path, const Contents& contents, std::size_t rank);

/// Makes master.h5: a virtual dataset for each tensor, of the boxes in the shards beside it.
void create_master(const std::filesystem::path& path, const Manifest& manifest);

}  // namespace trireme::checkpoint::hdf5
