// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/rank_order.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <numeric>

namespace trireme::layout {
namespace {

/// A vertex of the network's tree: a switch, or a node with its processes.
struct Vertex {
  std::map<std::string, std::unique_ptr<Vertex>> below;
  std::vector<int> processes;  // ascending
  int lowest = std::numeric_limits<int>::max();
};

/// Group of processes assembled so far, in the order of the mesh; the first one gives its location.
using Block = std::vector<int>;
using Blocks = std::vector<Block>;

std::unique_ptr<Vertex> build_tree(const std::vector<NetworkPath>& paths) {
  auto root = std::make_unique<Vertex>();
  for (std::size_t process = 0; process < paths.size(); ++process) {
    const int number = static_cast<int>(process);
    auto* vertex = root.get();
    vertex->lowest = std::min(vertex->lowest, number);
    for (const auto& name : paths[process]) {
      auto& next = vertex->below[name];
      if (!next) next = std::make_unique<Vertex>();
      vertex = next.get();
      vertex->lowest = std::min(vertex->lowest, number);
    }
    vertex->processes.push_back(number);
  }
  return root;
}

/// Vertices below in the order of their lowest process: the tree has no order of its own, and this
/// one begins with process 0.
std::vector<const Vertex*> ordered(const Vertex& vertex) {
  std::vector<const Vertex*> all;
  for (const auto& [name, next] : vertex.below) all.push_back(next.get());
  std::sort(all.begin(), all.end(),
            [](const Vertex* one, const Vertex* other) { return one->lowest < other->lowest; });
  return all;
}

void number_places(const Vertex& vertex, std::vector<int>& places, int& next) {
  for (const int process : vertex.processes) {
    places[static_cast<std::size_t>(process)] = next++;
  }
  for (const auto* below : ordered(vertex)) number_places(*below, places, next);
}

/// Joins `count` blocks at a time, at the lowest vertex that has so many. `loose` holds the blocks
/// of each vertex, by their first process. Returns the remaining blocks.
class Packer {
 public:
  Packer(int count, const Blocks& blocks, const std::vector<int>& places)
      : count_(static_cast<std::size_t>(count)), places_(places) {
    for (const auto& block : blocks) by_first_[block.front()] = &block;
  }

  /// Packs the whole tree into blocks, ordered by their first process.
  Blocks pack(const Vertex& root) {
    const auto left = pack_below(root);
    TRIREME_EXPECT(left.empty(), "the mesh has as many ranks as there are processes");
    std::sort(packed_.begin(), packed_.end(),
              [&](const Block& one, const Block& other) { return place(one) < place(other); });
    return std::move(packed_);
  }

 private:
  int place(const Block& block) const { return places_[static_cast<std::size_t>(block.front())]; }

  std::vector<const Block*> pack_below(const Vertex& vertex) {
    std::vector<const Block*> loose;
    for (const int process : vertex.processes) {
      if (const auto block = by_first_.find(process); block != by_first_.end()) {
        loose.push_back(block->second);
      }
    }
    for (const auto* next : ordered(vertex)) {
      const auto left = pack_below(*next);
      loose.insert(loose.end(), left.begin(), left.end());
    }
    std::size_t taken = 0;
    for (; loose.size() - taken >= count_; taken += count_) {
      Block joined;
      for (std::size_t index = taken; index < taken + count_; ++index) {
        joined.insert(joined.end(), loose[index]->begin(), loose[index]->end());
      }
      packed_.push_back(std::move(joined));
    }
    return {loose.begin() + static_cast<std::ptrdiff_t>(taken), loose.end()};
  }

  std::size_t count_;
  const std::vector<int>& places_;
  std::map<int, const Block*> by_first_;
  Blocks packed_;
};

/// Processes of one node are alike: the launcher's order among them is kept, because local ranks,
/// and with them GPUs and NICs, follow it.
void keep_order_in_nodes(const std::vector<NetworkPath>& paths, std::vector<int>& launched) {
  std::map<NetworkPath, std::vector<std::size_t>> positions;
  for (std::size_t rank = 0; rank < launched.size(); ++rank) {
    positions[paths[static_cast<std::size_t>(launched[rank])]].push_back(rank);
  }
  for (const auto& [path, ranks] : positions) {
    std::vector<int> processes;
    for (const auto rank : ranks) processes.push_back(launched[rank]);
    std::sort(processes.begin(), processes.end());
    for (std::size_t index = 0; index < ranks.size(); ++index) {
      launched[ranks[index]] = processes[index];
    }
  }
}

/// Axes as the mesh nests them, the innermost first.
std::vector<AxisExtent> innermost_first(const Mesh& mesh) {
  return {mesh.axes().rbegin(), mesh.axes().rend()};
}

int ring_cost(const std::vector<NetworkPath>& paths, const std::vector<int>& launched,
              const std::vector<base::Rank>& members, bool closed) {
  int cost = 0;
  const auto path = [&](std::size_t index) -> const NetworkPath& {
    return paths[static_cast<std::size_t>(launched[members[index].index()])];
  };
  for (std::size_t index = 0; index + 1 < members.size(); ++index) {
    cost += network_distance(path(index), path(index + 1));
  }
  if (closed && members.size() > 2) cost += network_distance(path(members.size() - 1), path(0));
  return cost;
}

int axis_cost(const Mesh& mesh, const std::vector<NetworkPath>& paths,
              const std::vector<int>& launched, Axis axis) {
  int cost = 0;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(axis, base::Rank(rank)) != 0) continue;
    cost += ring_cost(paths, launched, mesh.group(axis, base::Rank(rank)), axis != Axis::pipeline);
  }
  return cost;
}

}  // namespace

int network_distance(const NetworkPath& one, const NetworkPath& other) {
  if (one == other) return 0;
  std::size_t common = 0;
  while (common < one.size() && common < other.size() && one[common] == other[common]) ++common;
  return static_cast<int>(std::max(one.size(), other.size()) - common);
}

NetworkCost network_cost(const Mesh& mesh, const std::vector<NetworkPath>& paths,
                         const std::vector<int>& launched) {
  NetworkCost cost;
  std::transform(std::rbegin(all_axes), std::rend(all_axes), cost.innermost_first.begin(),
                 [&](Axis axis) { return axis_cost(mesh, paths, launched, axis); });
  return cost;
}

bool RankOrder::changed() const {
  for (std::size_t rank = 0; rank < launched.size(); ++rank) {
    if (launched[rank] != static_cast<int>(rank)) return true;
  }
  return false;
}

RankOrder order_ranks(const Mesh& mesh, const std::vector<NetworkPath>& paths) {
  TRIREME_EXPECT(static_cast<int>(paths.size()) == mesh.world_size(),
                 "a path for each rank of the mesh");
  RankOrder order;
  order.launched.resize(paths.size());
  std::iota(order.launched.begin(), order.launched.end(), 0);
  order.as_launched = order.cost = network_cost(mesh, paths, order.launched);

  const auto root = build_tree(paths);
  std::vector<int> places(paths.size());
  int next = 0;
  number_places(*root, places, next);
  Blocks blocks;
  for (const int process : order.launched) blocks.push_back({process});
  for (const auto& extent : innermost_first(mesh)) {
    blocks = Packer(extent.degree, blocks, places).pack(*root);
  }
  auto packed = std::move(blocks.front());
  keep_order_in_nodes(paths, packed);
  const auto cost = network_cost(mesh, paths, packed);
  if (cost < order.as_launched) {
    order.launched = std::move(packed);
    order.cost = cost;
  }
  return order;
}

}  // namespace trireme::layout
