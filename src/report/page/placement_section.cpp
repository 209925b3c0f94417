// SPDX-License-Identifier: Apache-2.0
// Which rank computes where: nodes, in them NUMA nodes, in them ranks.
#include "trireme/base/counted.hpp"

#include "report/watch/placement.hpp"
#include "sections.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace trireme::report {
namespace {

using layout::Axis;
using record::RankPlace;
using record::RunPlacement;

/// Ranks that are drawn, and nodes that are listed; of more the first ones.
constexpr std::size_t most_drawn = 64;
constexpr std::size_t most_listed = 256;
/// Colours of pipeline stages.
constexpr int stage_colours = 6;

/// Numbers of a node's ranks, in their order.
struct Node {
  std::string name;
  std::vector<int> ranks;
};

std::vector<Node> nodes_of(const RunPlacement& placement) {
  std::vector<Node> nodes;
  std::map<std::string, std::size_t> index;
  for (std::size_t rank = 0; rank < placement.ranks.size(); ++rank) {
    const auto& name = placement.ranks[rank].node;
    const auto [found, is_new] = index.emplace(name, nodes.size());
    if (is_new) nodes.push_back({name, {}});
    nodes[found->second].ranks.push_back(static_cast<int>(rank));
  }
  return nodes;
}

const RankPlace& place_of(const RunPlacement& placement, int rank) {
  return placement.ranks[static_cast<std::size_t>(rank)];
}

/// "pp 1 · tp 0": of axes that the run has more than one rank on.
std::string coordinates_text(const layout::Mesh& mesh, int rank) {
  std::vector<std::string> parts;
  for (const auto& extent : mesh.axes()) {
    if (extent.degree == 1) continue;
    parts.push_back(base::format("{} {}", layout::short_name(extent.axis),
                                 mesh.coordinate(extent.axis, base::Rank{rank})));
  }
  return base::format("{}", base::join(parts, " · "));
}

std::string memory_text(const std::vector<int>& numa_nodes) {
  if (numa_nodes.empty()) return "NUMA node unknown";
  return base::format("NUMA {}", ranges_text(numa_nodes));
}

Html rank_box(const RunPlacement& placement, int rank) {
  const auto& place = place_of(placement, rank);
  const int stage = placement.mesh.coordinate(Axis::pipeline, base::Rank{rank});
  const auto gpu = place.gpu.empty() ? std::string{} : base::format(" · GPU {}", place.gpu);
  return markup("<div class=\"rank s{}\"><b>{}</b> {}<small>CPUs {}{}</small></div>",
                stage % stage_colours, rank, coordinates_text(placement.mesh, rank),
                place.cpus.empty() ? "unknown" : place.cpus, gpu);
}

/// A node's first ranks, in their NUMA nodes.
Html node_box(const RunPlacement& placement, const Node& node, std::size_t most) {
  std::map<std::vector<int>, Html> memories;
  for (std::size_t index = 0; index < std::min(most, node.ranks.size()); ++index) {
    const auto rank = node.ranks[index];
    memories[place_of(placement, rank).numa_nodes] += rank_box(placement, rank);
  }
  Html content;
  for (const auto& [numa_nodes, ranks] : memories) {
    content +=
        markup("<div class=\"memory\"><span>{}</span>{}</div>", memory_text(numa_nodes), ranks);
  }
  const auto left = node.ranks.size() - std::min(most, node.ranks.size());
  if (left > 0) content += markup("<p class=\"note\">and {} more ranks</p>", left);
  return markup("<div class=\"node\"><h4>{}</h4>{}</div>\n",
                node.name.empty() ? "a node without a name" : node.name, content);
}

/// "pp 0-1, dp 3": coordinates that a node's ranks have.
std::string span_text(const layout::Mesh& mesh, const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (const auto& extent : mesh.axes()) {
    if (extent.degree == 1) continue;
    std::set<int> places;
    for (const int rank : ranks) places.insert(mesh.coordinate(extent.axis, base::Rank{rank}));
    parts.push_back(base::format("{} {}", layout::short_name(extent.axis),
                                 ranges_text({places.begin(), places.end()})));
  }
  return base::format("{}", base::join(parts, ", "));
}

Html node_list(const RunPlacement& placement, const std::vector<Node>& nodes) {
  std::vector<std::vector<Html>> rows;
  for (const auto& node : nodes) {
    if (rows.size() == most_listed) break;
    rows.push_back({text(node.name), text(ranges_text(node.ranks)),
                    text(span_text(placement.mesh, node.ranks))});
  }
  const auto left = nodes.size() - rows.size();
  return markup("<details><summary>{}</summary>\n{}{}</details>\n",
                base::counted(std::ssize(nodes), "node"),
                table({"node", "ranks", "coordinates"}, rows),
                left > 0 ? markup("<p class=\"note\">and {} more nodes</p>", left) : Html{});
}

Html placement_of(const RunPlacement& placement) {
  const auto nodes = nodes_of(placement);
  Html boxes;
  std::size_t drawn = 0;
  std::size_t count = 0;
  for (const auto& node : nodes) {
    if (drawn == most_drawn || (drawn > 0 && drawn + node.ranks.size() > most_drawn)) break;
    boxes += node_box(placement, node, most_drawn - drawn);
    drawn += std::min(node.ranks.size(), most_drawn);
    ++count;
  }
  auto content = markup("<div class=\"nodes\">\n{}</div>\n", boxes);
  if (count < nodes.size()) {
    content += markup("<p class=\"note\">The first {} of {} nodes.</p>\n", count, nodes.size());
  }
  if (nodes.size() > 1) content += node_list(placement, nodes);
  return content;
}

}  // namespace

Html placement_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    if (run.placement) content += part_of_run(runs, run, placement_of(*run.placement));
  }
  return section("placement", "Placement", content);
}

}  // namespace trireme::report
