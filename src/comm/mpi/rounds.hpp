// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"

#include "comm/mpi/stage.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

/// Collectives in which no rank sends to, or hears of, more than some of the others: as many as the
/// logarithm of their number, or twice that. Ranks relay what they have heard, so one that misses a
/// message asks its neighbour whom that waits for (watchdog/hang_diagnosis).
namespace trireme::comm {

enum class Relays {
  among_many,  ///< small collectives of more than a few ranks are relayed
  never        ///< nobody could ask a neighbour whom it waits for
};

/// Position among the members of a group.
struct Position {
  int rank = 0;
  int size = 1;
  Relays relays = Relays::among_many;

  int after(int distance) const { return (rank + distance) % size; }
  int before(int distance) const { return (rank - distance % size + size) % size; }
  /// Whether small collectives are one exchange of each with each: among so few ranks that is
  /// fastest, and exactly those are missed that do not come.
  bool is_direct() const { return size <= 4 || relays == Relays::never; }
};

/// Parts [begins[i], begins[i + 1]) of all ranks come to all, in rounds that double what a rank has
/// (Bruck et al. 1997): two messages a round at most. The own part lies at its place.
std::vector<Stage> gather_rounds(const Position& at, std::byte* whole,
                                 std::span<const std::size_t> begins);

/// Nobody's last message comes before all have sent their first: relayed (Hensgen, Finkel and
/// Manber 1988), or from each to each.
std::vector<Stage> barrier_rounds(const Position& at);

/// Two barriers among these ranks of a communicator, of which this is number `at.rank`: nobody ends
/// the second whose peers have given up in the first.
std::vector<Stage> arrival_rounds(const Position& at, std::span<const base::Rank> members);

/// Bytes of the root come to all, along a binomial tree.
std::vector<Stage> broadcast_rounds(const Position& at, int root, std::span<std::byte> bytes);

/// Bytes become the same on all ranks: what `combine(theirs)` makes of own and others', up a
/// binomial tree and down again. For operations whose result does not depend on the order.
/// `staging`: as many bytes for each rank below the own one (children_of()).
std::vector<Stage> combine_rounds(const Position& at, std::span<std::byte> bytes,
                                  std::byte* staging,
                                  const std::function<void(const std::byte*)>& combine);
/// Ranks right below this one in the tree whose root is rank 0, the nearest first.
std::vector<int> children_of(const Position& at);

}  // namespace trireme::comm
