// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/items.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace trireme::checkpoint {

struct SaveRequest {
  /// RUN/checkpoints; made when missing. One file system for all ranks.
  std::filesystem::path checkpoints;
  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  /// "trireme 0.1.0 (1a2b3c4)": for people; goes into the manifest.
  std::string tool_version;
  /// State that the manifest stores unchanged; only rank 0's is used.
  base::Json state;
  std::vector<SaveItem> items;
};

struct SaveOptions {
  /// Threads of this rank, for checksums and writing; 0: one per core, at most four.
  int threads = 0;
  FileSystem& files = FileSystem::system();
};

struct SaveReport {
  std::filesystem::path folder;     ///< the committed step folder
  std::uint64_t payload_bytes = 0;  ///< of all tensors, each element once
  std::uint64_t written_bytes = 0;  ///< written by this rank
  double seconds = 0;
};

/// Collective over the group. Host-blocking: yes. Approximate length of manifest.json for a save of
/// such items (their values are not read), which `replicas` ranks hold alike. The same on all
/// ranks.
std::uint64_t predict_manifest_bytes(std::span<const SaveItem> items, int replicas,
                                     comm::ProcessGroup& world);
/// Refuses (usage) a length that readers would refuse.
base::Status check_manifest_bytes(std::uint64_t predicted);

/// Collective over the group. Host-blocking: yes. When it returns, the checkpoint is committed
/// and durable, on every rank. An earlier folder of the same step is replaced at once.
/// Throws Error (checkpoint) on every rank when any rank failed, naming the lowest such rank and
/// its text; older checkpoints are untouched then and the half-written folder is removed.
SaveReport save(const SaveRequest& request, comm::ProcessGroup& world,
                const SaveOptions& options = {});

}  // namespace trireme::checkpoint
