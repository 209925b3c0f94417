// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/shm/segment.hpp"
#include "comm/watchdog/node_status.hpp"

#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Phase of a collective: in a scatter each rank sends each other rank a separate piece, in a
/// gather each rank sends all others the same piece.
enum class Phase : std::size_t { scatter = 0, gather = 1 };

/// Identity of an operation, in its first round: peers compare it with their own.
struct Signature {
  std::uint64_t number;
  std::uint64_t bytes;
  std::uint64_t kind;
  bool operator==(const Signature&) const = default;
};

/// The shared memory of a group as each rank's outbox: two rings of slots, one a phase. Rounds
/// are counted from 0 for the life of the group; round n is in slot n % slots. A rank fills a
/// slot when all peers have taken the round that it held. All counters are each written by one
/// rank, so a wait can name the ranks that it waits for.
class SharedChannel {
 public:
  static constexpr std::size_t slots = 4;

  /// Bytes of shared memory that `ranks` ranks need.
  static std::size_t bytes_needed(int ranks);

  /// `members` are the local ranks by position.
  SharedChannel(SharedMemory& memory, NodeStatus& status, std::vector<base::LocalRank> members,
                int self);

  int size() const { return size_; }
  int self() const { return self_; }

  /// Longest piece in bytes: for one peer in a scatter round, for all in a gather round.
  std::size_t scatter_piece() const;
  static std::size_t gather_piece();

  /// True if this rank may fill the slot of `round`: it is next, and the slot is free.
  bool may_send(Phase phase, std::uint64_t round) const;
  /// True if this rank may read `round` of all peers, and has read all rounds before.
  bool may_take(Phase phase, std::uint64_t round) const;

  /// Slot of the piece that `source` has for `destination`, and of its piece for all.
  std::byte* scatter_slot(int source, std::uint64_t round, int destination) const;
  std::byte* gather_slot(int source, std::uint64_t round) const;
  Signature& signature(Phase phase, int source, std::uint64_t round) const;

  /// Records that this rank has filled, or read, the round, and wakes peers that sleep.
  void sent(Phase phase, std::uint64_t round);
  void taken(Phase phase, std::uint64_t round);

  /// Positions that have not sent `round`, and that have not taken it.
  std::vector<int> not_sent(Phase phase, std::uint64_t round) const;
  std::vector<int> not_taken(Phase phase, std::uint64_t round) const;

  void wake_peers();
  void wake(int position);

 private:
  struct Counters;

  Counters& counters(int position) const;
  std::byte* outbox(int position) const;

  std::byte* memory_;
  NodeStatus& status_;
  std::vector<base::LocalRank> members_;
  int size_;
  int self_;
};

}  // namespace trireme::comm
