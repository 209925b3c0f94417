// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace trireme::tests {

/// Records every change that a save makes in a folder, and when which of them was made durable, and
/// builds the states in which a power cut may leave the folder: any change that no sync has covered
/// may be there or not, whatever came before or after it. Names are made durable by a sync of their
/// folder, data by a sync of their file.
///
/// Shards are written one after the other, so that each recording is the same.
class RecordedStorage : public checkpoint::FileSystem {
 public:
  /// Files that are in `root` now count as durable; `memory` is an empty folder on the same file
  /// system, which keeps it.
  RecordedStorage(std::filesystem::path root, std::filesystem::path memory);

  /// As on file systems that cannot exchange two names.
  void forbid_exchange() { exchange_forbidden_ = true; }
  /// Syncs of files are reported as done, and are not: a disk with a volatile cache that lies.
  void lose_file_syncs() { file_syncs_lost_ = true; }

  int make_folder(const std::filesystem::path& path) override;
  int open(const std::filesystem::path& path, int flags, unsigned mode) override;
  int allocate(int descriptor, std::uint64_t bytes) override;
  ssize_t write(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) override;
  int sync(int descriptor) override;
  int close(int descriptor) override;
  int rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  int exchange(const std::filesystem::path& a, const std::filesystem::path& b) override;
  int remove_folder(const std::filesystem::path& path) override;

  /// A state after a power cut.
  struct State {
    std::vector<bool> applied;  ///< by change
    /// Change of which only the first half has reached the disk; -1: none.
    int torn = -1;
    /// Syncs of the root that had returned.
    int root_syncs = 0;
    std::string text;  ///< "power cut after change 12 of 31, without change 9 (write …)"
  };
  /// Every state of these classes once, at each point of the recording: with all, with none of the
  /// changes that are not durable; without each of them; with each alone; with the first half of
  /// each write; and so many random choices.
  std::vector<State> states(int random_choices, std::uint32_t seed) const;
  /// Makes the new folder `to` in that state.
  void build(const State& state, const std::filesystem::path& to) const;

  std::size_t changes() const { return changes_.size(); }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
  struct Change {
    enum class Kind { add, remove, rename, exchange, write, resize } kind;
    int node;  ///< the folder whose names, or the file whose data change
    std::string name = {};
    std::string other = {};
    int child = -1;            ///< what `add` gives the name to
    std::uint64_t offset = 0;  ///< of a write; the length after `resize`
    std::vector<std::byte> bytes = {};
    int time = 0;
    int durable = never;
  };
  struct Node {
    std::string name;  ///< the first one that it had
    bool folder;
    std::filesystem::path original;    ///< of a file that was there before
    std::map<std::string, int> names;  ///< of a folder, at the beginning
  };
  using Names = std::vector<std::map<std::string, int>>;

  int add_tree(const std::filesystem::path& path);
  int node_at(const std::filesystem::path& path) const;
  void record(Change change);
  int add_node(const std::filesystem::path& path, bool folder);
  static void apply(const Change& change, Names& names);
  void write_file(int node, const State& state, const std::filesystem::path& to) const;
  void write_folder(int node, const State& state, const Names& names,
                    const std::filesystem::path& to) const;
  std::string text_of(std::size_t change) const;

  std::filesystem::path root_;
  std::mutex mutex_;
  std::condition_variable shard_closed_;
  int closed_shards_ = 0;
  std::vector<Node> nodes_;
  /// Names as they are now.
  Names now_;
  std::vector<Change> changes_;
  int time_ = 0;
  std::vector<int> root_syncs_;
  std::map<int, int> descriptors_;  // nodes by descriptor
  bool exchange_forbidden_ = false;
  bool file_syncs_lost_ = false;
};

}  // namespace trireme::tests
