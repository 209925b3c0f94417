// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/checkpoint/contents.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/device/device.hpp"
#include "trireme/device/tensor.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// Host memory of a save from a device.
inline constexpr std::size_t save_staging_bytes = std::size_t{32} << 20;

class NodeTier;

struct SaveRequest {
  /// RUN/checkpoints; made when missing. One file system for all ranks, unless there is a tier.
  std::filesystem::path checkpoints;
  std::int64_t step = 0;
  std::uint64_t tokens = 0;
  /// "trireme 0.1.0 (1a2b3c4)": for people; goes into the manifest.
  std::string tool_version;
  /// State that the manifest stores unchanged; only rank 0's is used.
  base::Json state;
  /// The same on every rank; files are numbered by rank.
  Contents contents;
  /// Values of this rank's shard of each bucket that has its file, in the order of the
  /// buckets: contiguous.
  std::vector<device::Tensor> shards;
  /// Where they lie; null: in host memory. From a device they come by save_staging_bytes of its
  /// host memory, on the thread that calls save(): not for saves in the background.
  device::Device* device = nullptr;
  /// Signs the manifest (signature.hpp), and with it a SHA-256 of each block of every file, unless
  /// it is empty; only rank 0's is used.
  std::string key = {};
  /// Saves into the folders of the nodes, of which `checkpoints` is this one's; for saves in the
  /// background alone. Null: into one folder. It outlives the save.
  const NodeTier* tier = nullptr;
  /// Host memory of copied_bytes() for the values of other ranks.
  std::span<std::byte> copies = {};
  /// A step of this node's folder, with this rank's file: it is copied, each block verified,
  /// instead of shards being written. Empty: shards are.
  std::filesystem::path from = {};
};

/// Digests that a file has beside the checksums of its blocks.
enum class BlockDigests { none, sha256 };

struct SaveOptions {
  /// Threads of this rank, for checksums and writing; 0: one per core, at most four.
  int threads = 0;
  FileSystem& files = FileSystem::system();
  /// Called on rank 0 before the step gets its name: what it throws fails the save. May be empty.
  std::function<void()> before_commit = nullptr;
  /// Once it is true, writing ends early with Error (checkpoint); may be null.
  const std::atomic<bool>* cancelled = nullptr;
  /// Longest time in which no call of a rank's file system returns. Requests to an object store
  /// have their own limits.
  std::chrono::milliseconds longest_standstill = std::chrono::minutes(30);
  /// Digests of this rank's file. Set by a save on all ranks where the first has a key.
  BlockDigests digests = BlockDigests::none;
};

struct SaveReport {
  std::filesystem::path folder;     ///< the committed step folder
  std::uint64_t payload_bytes = 0;  ///< of all tensors, each element once
  std::uint64_t written_bytes = 0;  ///< by this rank, padding of buckets included
  double seconds = 0;
};

/// Collective over the group. Host-blocking: yes. When it returns, the checkpoint is committed
/// and durable, on every rank. An earlier folder of the same step is replaced at once.
/// Throws Error (checkpoint) on every rank when any rank failed, naming the lowest such rank and
/// its text; older checkpoints are untouched then and the half-written folder is removed. A rank
/// that writes slowly is waited for beyond comm.timeout, from host memory; PeerError where it
/// stands still (SaveOptions::longest_standstill).
SaveReport save(const SaveRequest& request, comm::ProcessGroup& world,
                const SaveOptions& options = {});

}  // namespace trireme::checkpoint
