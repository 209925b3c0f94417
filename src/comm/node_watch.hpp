#pragma once

#include "trireme/base/file.hpp"

#include "board.hpp"
#include "mpi_calls.hpp"
#include "progress.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace trireme::comm {

/// Looks after all peers: those of this node through the board and their process descriptors,
/// those of other nodes through notices that a failing rank sends.
class NodeWatch final : public PeerWatch {
 public:
  struct World {
    base::Rank self;
    /// Node of each world rank.
    std::vector<std::string> hosts;
    /// The launcher's number of each world rank.
    std::vector<int> tasks;
    /// Lowest world rank on the node of each world rank: tells nodes apart.
    std::vector<int> leaders;
    /// World ranks of this node, by local rank.
    std::vector<base::Rank> neighbours() const;
    /// "task 5, " where the launcher calls the rank something else; else nothing.
    std::string task_text(base::Rank rank) const;
  };
  /// Without a board (memory cannot be shared) only notices and deadlines tell of lost peers.
  NodeWatch(std::unique_ptr<Board> board, World world, MPI_Comm control);

  void check(const PendingOperation& waiting) override;
  std::string describe(base::Rank rank) const override;
  std::string host(base::Rank rank) const override { return world_.hosts[rank.index()]; }
  std::vector<base::Rank> stopped() const override;
  void show_activity(std::string_view text) override;
  std::uint32_t arm() override;
  void sleep(std::uint32_t armed, std::chrono::microseconds at_most) override;
  void disarm() override;

  Board* board() const { return board_.get(); }
  const World& world() const { return world_; }

  /// What is known about the first failure, if any.
  std::optional<Board::Verdict> lost_peer();
  /// Tells every peer of this rank's failure, and waits a moment until those of this node have
  /// spoken too. A rank that fails by itself is the first to end, so that launchers report its
  /// code; a neighbour that hangs is killed.
  enum class Role {
    first,    ///< of its node to speak: it ends whoever cannot end by itself
    follower  ///< just ends
  };
  Role announce(const Board::Verdict& verdict);
  void leave();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Board::Verdict> dead_neighbour() const;
  std::optional<Board::Verdict> notice() const;
  void send_notices(const Board::Verdict& verdict, Clock::time_point until) const;
  void linger(const Board::Verdict& verdict, Role role, Clock::time_point until) const;
  void end_culprit(const Board::Verdict& verdict) const;
  /// The process is gone, or cannot be seen.
  bool has_ended(base::LocalRank rank) const;
  /// It is gone without having said that it failed or left.
  bool is_dead(base::LocalRank rank) const;
  std::optional<base::LocalRank> neighbour(base::Rank rank) const;

  std::unique_ptr<Board> board_;
  World world_;
  MPI_Comm control_;
  /// By local rank; empty for this rank.
  std::vector<base::File> processes_;
  Clock::time_point next_look_;
};

}  // namespace trireme::comm
