// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <cstddef>
#include <cstdint>

/// The HDF5 structure of the files of a step.
namespace trireme::checkpoint::hdf5 {

/// A file in memory, as long as the one in storage shall be, with zeros (which take no memory)
/// where the values will be: storage gets each byte by one write, counted and checked by Trireme.
struct Structure {
  base::File file;
  std::uint64_t bytes = 0;
};

/// The file of a rank: for each element type of its shards one dataset ("/f32"), which lies where
/// the contents say, and a table of what it holds ("/f32_table"). Throws Error (checkpoint), also
/// when HDF5 has laid a dataset elsewhere.
Structure shard_structure(const Contents& contents, std::size_t rank);

/// master.h5: a virtual dataset for each tensor, of the boxes in the shards beside it. Throws Error
/// (checkpoint).
Structure master_structure(const Manifest& manifest);

}  // namespace trireme::checkpoint::hdf5
