// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/save.hpp"

#include "checkpoint/save/commit.hpp"
#include "checkpoint/tier/copies.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// One save in the parts that it consists of: collective ones, and between them local ones, which a
/// thread of their own may do. A failure of any rank ends a collective part on all with
/// AgreedError, after those who commit have removed the folder.
class SaveRun {
 public:
  /// Collective over the group. Host-blocking: yes. Agrees on what is saved and makes the folder
  /// that is not committed yet.
  SaveRun(SaveRequest request, comm::ProcessGroup& world, const SaveOptions& options);

  /// Its shards lie in host memory, where any thread reads them.
  bool is_of_host() const { return request_.device == nullptr; }
  /// Values that go to other nodes, whose messages are for the rank's own thread.
  Copies& copies() { return copies_; }
  /// Writes this rank's file, and the master file where this rank commits for all. Throws Error
  /// (checkpoint).
  void write_file();
  /// Collective over the group. Host-blocking: yes. Takes `written`, what became of write_file(),
  /// and tells those who commit what must be known of all files.
  void gather(const base::Status& written, comm::ProcessGroup& world);
  /// Writes the copies of other nodes' files, whose messages are there. Throws Error (checkpoint).
  void write_copies() const { copies_.write(options_, place_.path); }
  /// Collective over the group. Host-blocking: yes. Takes what became of write_copies().
  void agree(const base::Status& written, comm::ProcessGroup& world);
  /// Commits on rank 0, or the first of each node; does nothing on others. Throws Error
  /// (checkpoint).
  void commit();
  /// Collective over the group. Host-blocking: yes. Takes what became of commit().
  SaveReport finish(const base::Status& committed, comm::ProcessGroup& world);

 private:
  void write_master_file();

  SaveRequest request_;
  SaveOptions options_;
  Copies copies_;
  /// Rank 0, or the first of each node.
  bool commits_;
  int rank_;
  std::size_t world_size_;
  std::chrono::steady_clock::time_point start_;
  Place place_;
  StoredFile mine_;
  std::optional<StoredFile> master_;
  /// Files of all ranks, on rank 0.
  std::vector<StoredFile> all_;
  /// Manifest of a step of nodes, which all of them write.
  std::string manifest_text_;
  SaveReport report_;
};

}  // namespace trireme::checkpoint
