// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/comm/process_group.hpp"

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
  /// Writes the files of the ranks whose values are there. Each must become what its rank has
  /// written: `files`, by rank. Throws Error (checkpoint).
  void write(const SaveOptions& options, const std::filesystem::path& folder,
             const std::vector<StoredFile>& files) const;

 private:
  struct Received {
    int owner;
    std::vector<device::Tensor> shards;
  };

  const SaveRequest& request_;
  std::vector<int> holders_;
  std::vector<Received> received_;
  std::vector<comm::Work> works_;
  bool started_ = false;
};

}  // namespace trireme::checkpoint
