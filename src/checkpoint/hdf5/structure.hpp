// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/items.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstdint>
#include <filesystem>
#include <vector>

/// HDF5 files of a step without their payload: the only place that decides which dataset holds
/// which box. Failures throw base::Error (checkpoint).
namespace trireme::checkpoint::hdf5 {

/// Boxes with fewer bytes than this share one dataset per element type.
constexpr std::uint64_t small_box_bytes = std::uint64_t{64} << 10;

/// A new shard with a dataset for every box, its storage reserved and not written. Returns the byte
/// of the file at which the elements of each box begin.
std::vector<std::uint64_t> create_shard(const std::filesystem::path& path,
                                        const std::vector<HeldBox>& boxes);

/// A new file with a virtual dataset for every tensor of the manifest, which shows its boxes in the
/// shards beside the file.
void create_master(const std::filesystem::path& path, const Manifest& manifest);

}  // namespace trireme::checkpoint::hdf5
