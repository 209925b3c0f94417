// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// Way of bytes to the disk: through the system's cache, as checkpoints are written, or past it.
enum class DiskAccess { buffered, direct };
/// "buffered", "direct".
const char* name(DiskAccess access);

struct DiskOptions {
  std::filesystem::path folder;
  /// Bytes of all ranks together; each writes a file with its share, in whole blocks of 1 MiB.
  std::uint64_t bytes = std::uint64_t{1} << 30;
  std::vector<DiskAccess> accesses{DiskAccess::buffered, DiskAccess::direct};
  /// Threads of each rank; 0: as many as a checkpoint's writer uses.
  int threads = 0;
  int repeats = 3;
};

struct DiskMeasurement {
  /// "write" (space reserved before, fsync at the end) or "read" (nothing of it in the cache).
  const char* operation;
  DiskAccess access;
  int ranks;
  std::uint64_t bytes;
  /// Median and fastest over repeats, of the slowest rank in each.
  double seconds;
  double fastest_seconds;
};

/// Collective over the world; the same result on every rank. The data read are compared with the
/// data written. The files are removed in any case. A file system without direct access is skipped
/// with a line in the log. Failures: base::Error (ExitCode::checkpoint).
std::vector<DiskMeasurement> measure_disk(comm::ProcessGroup& world, const DiskOptions& options);

}  // namespace trireme::checkpoint
