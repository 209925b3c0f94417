#pragma once

#include "board.hpp"
#include "shared_memory.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace trireme::comm {

/// The two directions of data in a collective: everybody gives everybody a piece of its own, or
/// everybody gives all others the same piece.
enum class Lane : std::size_t { exchange = 0, spread = 1 };

/// What a rank does in the first round of an operation: peers compare it with what they do.
struct Signature {
  std::uint64_t number;
  std::uint64_t bytes;
  std::uint64_t kind;
  bool operator==(const Signature&) const = default;
};

/// The shared memory of a group as each rank's outbox: two lanes, each a ring of slots. Rounds
/// are counted from 0 for the life of the group; round n is in slot n % slots. A rank fills a
/// slot when all peers have taken the round that it held. All counters are each written by one
/// rank, so a wait can name the ranks that it waits for.
class SharedLanes {
 public:
  static constexpr std::size_t slots = 4;

  /// Bytes of shared memory that `ranks` ranks need.
  static std::size_t bytes_needed(int ranks);

  /// `members` are the local ranks by position.
  SharedLanes(SharedMemory& memory, Board& board, std::vector<base::LocalRank> members, int self);

  int size() const { return size_; }
  int self() const { return self_; }

  /// The longest piece for one peer in an exchange round, and for all in a spread round.
  std::size_t exchange_piece() const;
  static std::size_t spread_piece();

  /// Whether this rank may fill the slot of `round`: it is next, and the slot is free.
  bool may_send(Lane lane, std::uint64_t round) const;
  /// Whether this rank may read `round` of all peers, and has read all rounds before.
  bool may_take(Lane lane, std::uint64_t round) const;

  /// Where this rank's piece for `peer` goes, or where `source` put the one for this rank.
  std::byte* exchange_slot(int source, std::uint64_t round, int destination) const;
  std::byte* spread_slot(int source, std::uint64_t round) const;
  Signature& signature(Lane lane, int source, std::uint64_t round) const;

  /// This rank has filled, or read, the round; wakes whoever sleeps.
  void sent(Lane lane, std::uint64_t round);
  void taken(Lane lane, std::uint64_t round);

  /// Positions that have not sent `round`; that have not taken it.
  std::vector<int> not_sent(Lane lane, std::uint64_t round) const;
  std::vector<int> not_taken(Lane lane, std::uint64_t round) const;

  void ring_peers();
  void ring(int position);

 private:
  struct Counters;

  Counters& counters(int position) const;
  std::byte* outbox(int position) const;

  std::byte* memory_;
  Board& board_;
  std::vector<base::LocalRank> members_;
  int size_;
  int self_;
};

}  // namespace trireme::comm
