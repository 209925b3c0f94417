// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// Folders for the newest steps of a run in storage that each node has for itself (NVMe, memory).
/// A node holds the files of its own ranks, and copies of those of other nodes: with one copy the
/// loss of any node loses nothing. Its steps are committed like those of a shared folder, each
/// node's part by the node's first rank; what all parts complete can be recovered.
class NodeTier {
 public:
  /// `folder` is the path on this rank's node; `node_of_rank`, the same on every rank, is any
  /// number for each node. More copies than other nodes are not made.
  NodeTier(std::filesystem::path folder, const std::vector<int>& node_of_rank, int copies);

  const std::filesystem::path& folder() const { return folder_; }
  int copies() const { return copies_; }
  /// True for the first rank of each node, which writes what the node has once.
  bool leads_node(int rank) const { return place_[index(rank)].member == 0; }
  /// Ranks that hold copies of a rank's file: on the next nodes, at the same place of each.
  std::vector<int> holders(int rank) const;
  /// Ranks whose files a rank holds copies of, ascending.
  std::vector<int> owners(int rank) const;
  /// Ranks of a rank's node, and its place among them.
  const std::vector<int>& neighbours(int rank) const { return nodes_[place_[index(rank)].node]; }
  std::size_t place_on_node(int rank) const { return place_[index(rank)].member; }

 private:
  struct Place {
    std::size_t node = 0;
    std::size_t member = 0;
  };
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  std::filesystem::path folder_;
  int copies_;
  std::vector<std::vector<int>> nodes_;
  std::vector<Place> place_;
};

/// Folder of a run in LOCAL, for this user alone, made where `makes` says so. The folders of
/// earlier runs in the same place are removed then: `id` tells them apart. Throws Error
/// (checkpoint).
std::filesystem::path open_node_folder(const std::filesystem::path& local,
                                       const std::filesystem::path& run, std::string_view id,
                                       bool makes);

/// Removes what a run, or earlier ones in the same place, have on this node, whole. Returns the
/// folders. No start uses them. Throws Error (checkpoint).
std::vector<std::filesystem::path> forget_node_folders(const std::filesystem::path& local,
                                                       const std::filesystem::path& run);

/// Bytes of the files that a rank holds copies of, without their structure.
std::size_t copied_bytes(const NodeTier& tier, const Contents& contents, int rank);

/// Collective over the group. Host-blocking: yes. Copies the newest step that the nodes complete,
/// each block verified, to `checkpoints` and commits it there, unless that folder has one as new.
/// A file that is damaged on one node is taken from another. Returns the step. Throws Error
/// (checkpoint) on every rank when `checkpoints` cannot be written.
std::optional<StepFolder> recover(const NodeTier& tier, const std::filesystem::path& checkpoints,
                                  comm::ProcessGroup& world, const ReadAccess& access = {});

/// Removes, on this node, committed steps but those to keep, and what saves have left that were
/// killed. Failures are logged.
void keep_on_node(const NodeTier& tier, const std::function<bool(std::int64_t step)>& is_kept);

}  // namespace trireme::checkpoint
