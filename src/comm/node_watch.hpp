#pragma once

#include "board.hpp"
#include "inquiry.hpp"
#include "lifelines.hpp"
#include "mpi_calls.hpp"
#include "progress.hpp"
#include "watched_process.hpp"
#include "world.hpp"

#include <chrono>
#include <optional>
#include <vector>

namespace trireme::comm {

/// Looks after all peers: those of this node through the board and their process descriptors,
/// those of other nodes through notices that a failing rank sends and through lifelines.
class NodeWatch final : public PeerWatch {
 public:
  /// Collective over the world. Without a board (memory cannot be shared) only notices, lifelines
  /// and deadlines tell of lost peers.
  NodeWatch(std::unique_ptr<Board> board, World world, MPI_Comm control);
  ~NodeWatch() override = default;
  NodeWatch(const NodeWatch&) = delete;
  NodeWatch& operator=(const NodeWatch&) = delete;

  void check(const PendingOperation& waiting) override;
  Blame find_blame(const PendingOperation& waiting) override;
  std::string host(base::Rank rank) const override { return world_.hosts[rank.index()]; }
  void show_activity(std::string_view text) override;
  std::uint32_t arm() override;
  void sleep(std::uint32_t armed, std::chrono::microseconds at_most) override;
  void disarm() override;

  Board* board() const { return board_.get(); }
  const World& world() const { return world_; }

  /// What is known about the first failure, if any.
  std::optional<Board::Verdict> lost_peer();
  /// Tells every peer of this rank's failure. A rank that fails by itself is the first to end, so
  /// that launchers report its code; a neighbour that hangs is killed.
  enum class Role {
    first,    ///< of its node to speak: it ends whoever cannot end by itself
    follower  ///< just ends
  };
  Role announce(const Board::Verdict& verdict);
  /// After announce(), and whatever else this rank had to do: waits for those of this node as its
  /// role asks.
  void see_off(const Board::Verdict& verdict, Role role) const;
  void leave();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Board::Verdict> dead_neighbour();
  std::optional<Board::Verdict> notice() const;
  /// Of a rank of this node.
  Sighting look(base::Rank rank) const;
  std::string describe(base::LocalRank rank) const;
  [[noreturn]] static void give_up(const PendingOperation& waiting, const Board::Verdict& verdict);
  /// Of two nodes that do not hear each other, the one that nobody hears is to blame.
  void ask_whose_fault(const PendingOperation& waiting, Board::Verdict& verdict);
  void send_notices(const Board::Verdict& verdict, Clock::time_point until) const;
  void linger(const Board::Verdict& verdict, Role role, Clock::time_point until) const;
  void end_culprit(const Board::Verdict& verdict) const;
  /// The process is gone for sure: one that cannot be seen may well be there.
  bool has_ended(base::LocalRank rank) const;
  /// Says once a node where deaths are noticed late or not at all.
  void report_means() const;
  /// It is gone without having said that it failed or left.
  bool is_dead(base::LocalRank rank) const;
  std::optional<base::LocalRank> neighbour(base::Rank rank) const;

  std::unique_ptr<Board> board_;
  World world_;
  MPI_Comm control_;
  /// Where this rank holds one to another node.
  std::unique_ptr<Lifelines> lines_;
  Inquiry inquiry_;
  /// Whom this rank waits for.
  std::vector<base::Rank> awaited_;
  /// By local rank; unknown for this rank.
  std::vector<WatchedProcess> processes_;
  Clock::time_point next_look_;
  std::optional<Clock::time_point> death_seen_;
};

}  // namespace trireme::comm
