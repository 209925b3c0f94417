// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/progress_engine.hpp"
#include "comm/core/world.hpp"
#include "comm/mpi/calls.hpp"
#include "comm/watchdog/hang_diagnosis.hpp"
#include "comm/watchdog/node_status.hpp"
#include "comm/watchdog/tcp_liveness.hpp"
#include "comm/watchdog/watched_process.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace trireme::comm {

/// Detects peers that die, fail or hang: those of this node by its status page and their process
/// descriptors, those of other nodes by failure messages and TCP connections.
class Watchdog final : public PeerMonitor {
 public:
  /// Collective over the world. Without a status page (memory cannot be shared), lost peers are
  /// detected by failure messages, TCP connections and deadlines only.
  Watchdog(std::unique_ptr<NodeStatus> status, World world, MPI_Comm control);
  ~Watchdog() override = default;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void check(const PendingOperation& waiting) override;
  HangReport diagnose_hang(const PendingOperation& waiting) override;
  std::string host(base::Rank rank) const override { return world_.hosts[rank.index()]; }
  void show_activity(std::string_view text) override;
  std::uint32_t arm() override;
  void sleep(std::uint32_t armed, std::chrono::microseconds at_most) override;
  void disarm() override;

  NodeStatus* status() const { return status_.get(); }
  const World& world() const { return world_; }

  /// Cause of the first failure, if one is known.
  std::optional<FailureCause> lost_peer();
  /// Duty of a rank after a failure on its node.
  enum class Role {
    first,    ///< first of its node to report it: kills neighbours that cannot end by themselves
    follower  ///< just ends
  };
  /// Notifies every peer of this rank's failure. A rank that fails by itself is the first to end,
  /// so that launchers report its code; a neighbour that hangs is killed.
  Role announce(const FailureCause& cause);
  /// Waits, after announce() and all other work of this rank, for the neighbours that its role has
  /// to wait for, and kills the one that hangs.
  void wait_for_neighbours(const FailureCause& cause, Role role) const;
  void leave();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<FailureCause> dead_neighbour();
  /// Failure that a message from another node reports.
  std::optional<FailureCause> received_failure() const;
  /// Status of a rank of this node.
  RankStatus status_of(base::Rank rank) const;
  std::string describe(base::LocalRank rank) const;
  std::string text_of(base::Rank rank, int process, const std::string& doing) const;
  [[noreturn]] static void give_up(const PendingOperation& waiting, const FailureCause& cause);
  /// Names the one of two unconnected nodes that the other nodes cannot reach either.
  void find_cut_off_side(const PendingOperation& waiting, FailureCause& cause);
  void send_failure_messages(const FailureCause& cause, Clock::time_point until) const;
  void wait_for_ends(const FailureCause& cause, Role role, Clock::time_point until) const;
  void kill_hung(const FailureCause& cause) const;
  /// True if the process is known to have ended; one that cannot be observed may still run.
  bool has_ended(base::LocalRank rank) const;
  /// Warns once a node where deaths are noticed late or not at all.
  void warn_of_late_detection() const;
  /// True if the process ended without having reported a failure or a normal end.
  bool is_dead(base::LocalRank rank) const;
  std::optional<base::LocalRank> neighbour(base::Rank rank) const;

  std::unique_ptr<NodeStatus> status_;
  World world_;
  MPI_Comm control_;
  /// Connections of this rank to other nodes; null where it holds none.
  std::unique_ptr<TcpLiveness> tcp_;
  HangDiagnosis diagnosis_;
  /// Ranks that this rank waits for, and what in.
  std::vector<base::Rank> awaited_;
  std::string activity_;
  /// Processes by local rank; that of this rank is unknown.
  std::vector<WatchedProcess> processes_;
  Clock::time_point next_check_;
  std::optional<Clock::time_point> death_seen_;
};

}  // namespace trireme::comm
