// SPDX-License-Identifier: Apache-2.0
#include "comm/core/world.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::comm {

std::vector<base::Rank> World::ranks_of(int leader) const {
  std::vector<base::Rank> ranks;
  for (std::size_t rank = 0; rank < leaders.size(); ++rank) {
    if (leaders[rank] == leader) ranks.emplace_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<int> World::nodes() const {
  auto nodes = leaders;
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

base::Rank World::first_process() const {
  return base::Rank(static_cast<int>(std::find(tasks.begin(), tasks.end(), 0) - tasks.begin()));
}

std::string World::task_text(base::Rank rank) const {
  const int task = tasks[rank.index()];
  return task == rank.value() ? std::string{} : base::format("task {}, ", task);
}

std::string World::text(base::Rank rank) const {
  return base::format("rank {} ({}on {})", rank.value(), task_text(rank), hosts[rank.index()]);
}

}  // namespace trireme::comm
