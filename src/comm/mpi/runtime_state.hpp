// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include "comm/core/progress_engine.hpp"
#include "comm/mpi/group.hpp"
#include "comm/shm/store_choice.hpp"
#include "comm/watchdog/watchdog.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

namespace trireme::comm {

/// State of MpiRuntime between MPI's start and end.
class MpiRuntime::State {
 public:
  /// Collective over the world.
  explicit State(const StartOptions& options);

  /// See MpiRuntime::make_group.
  std::unique_ptr<ProcessGroup> make_group(std::string group_name, std::vector<base::Rank> ranks,
                                           const GroupOptions& options);

  base::Rank world_rank;
  int world_size = 1;
  base::LocalRank local_rank;
  int local_size = 1;
  base::NodeRank node_rank;
  int node_count = 1;
  std::string node_name;
  std::function<void(const RankFailure&)> listener;
  /// Failure of this rank once its peers have been notified.
  struct Announced {
    RankFailure failure;
    Watchdog::Role role;
  };
  std::optional<Announced> announced;
  /// True once its stack is unwound, its threads joined.
  std::atomic<bool> has_unwound{false};
  /// Numbers of a rank without a node status.
  PublishedNumbers published{};
  std::mutex published_mutex;

  Watchdog& watch() { return *watch_; }
  ProgressEngine& progress() { return progress_; }

 private:
  World learn_world();
  std::unique_ptr<NodeStatus> make_node_status(const World& world);
  void await_members(const std::string& group_name, const std::vector<base::Rank>& ranks, int tag,
                     double timeout_seconds);
  MpiGroup::Wiring wire(const std::vector<base::Rank>& ranks, int tag, const GroupOptions& options);
  /// Reason why the members cannot share memory, or success.
  base::Status can_share(const std::string& group_name, const std::vector<base::Rank>& ranks) const;
  base::Result<std::unique_ptr<ProcessGroup>> make_shared_group(ProcessGroup& parent,
                                                                const GroupOptions& options);

  /// Communicator for messages outside of any group.
  mpi::Communicator control_;
  mpi::Communicator node_;
  /// Messages of failed attempts may be on their way; tags keep them apart from others.
  bool control_broken_ = false;
  double start_timeout_seconds_;
  ProgressEngine progress_;
  CoreSharing core_sharing_ = CoreSharing::own;
  std::unique_ptr<Watchdog> watch_;
  std::map<std::string, std::uint64_t> groups_made_;  // by name
};

}  // namespace trireme::comm
