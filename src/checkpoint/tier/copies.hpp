// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/comm/process_group.hpp"

#include "checkpoint/save/file_record.hpp"

#include <filesystem>
#include <vector>

namespace trireme::checkpoint {

/// Copies of ranks' files on other nodes: values go there by messages, which make progress whenever
/// this process waits for any, and the file is made from them once more.
class Copies {
 public:
  /// Without a tier, of none. The request outlives it.
  Copies(const SaveRequest& request, int rank);
  /// Waits for messages under way.
  ~Copies();
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  /// This rank sends or receives.
  bool any() const { return !holders_.empty() || !received_.empty(); }
  /// Starts the messages; the shards have their values.
  void start(comm::ProcessGroup& world);
  bool is_started() const { return started_; }
  /// True once all messages are there. Makes progress.
  bool poll();
  void wait();
  /// Sends the facts on this rank's file to those that hold its copy, and waits for those on the
  /// files whose copies this rank holds. Every rank of the group does so.
  void exchange_records(const StoredFile& mine, comm::ProcessGroup& world);
  /// Writes the files of the ranks whose values are there. Each must become what its rank has
  /// written. Throws Error (checkpoint).
  void write(const SaveOptions& options, const std::filesystem::path& folder) const;

 private:
  struct Received {
    int owner;
    std::vector<device::Tensor> shards;
    FileRecord original;
  };

  const SaveRequest& request_;
  std::vector<int> holders_;
  std::vector<Received> received_;
  /// Facts on this rank's file, which messages send.
  FileRecord own_;
  std::vector<comm::Work> works_;
  bool started_ = false;
};

}  // namespace trireme::checkpoint
