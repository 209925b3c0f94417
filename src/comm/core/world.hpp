// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"

#include <string>
#include <vector>

namespace trireme::comm {

/// Ranks of the world and their nodes.
struct World {
  base::Rank self;
  /// Node of each world rank.
  std::vector<std::string> hosts;
  /// The launcher's number of each world rank.
  std::vector<int> tasks;
  /// Lowest world rank on the node of each world rank: identifies the node.
  std::vector<int> leaders;

  int leader(base::Rank rank) const { return leaders[rank.index()]; }
  bool is_neighbour(base::Rank rank) const { return leader(rank) == leader(self); }
  /// World ranks of one node, ascending: of this one, by local rank.
  std::vector<base::Rank> ranks_of(int leader) const;
  std::vector<base::Rank> neighbours() const { return ranks_of(leader(self)); }
  /// The leader of each node, ascending.
  std::vector<int> nodes() const;
  /// Rank of the launcher's first process.
  base::Rank first_process() const;
  /// Text "task 5, " where the launcher's number differs from the rank; else empty.
  std::string task_text(base::Rank rank) const;
  /// "rank 5 (task 6, on n3)".
  std::string text(base::Rank rank) const;
};

}  // namespace trireme::comm
