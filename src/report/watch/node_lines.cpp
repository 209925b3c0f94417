// SPDX-License-Identifier: Apache-2.0
#include "node_lines.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "placement.hpp"
#include "report/run_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace trireme::report {
namespace {

using base::format;

constexpr std::size_t most_nodes = 16;

/// Stages of these ranks; empty with one stage, or where they are not known.
std::vector<int> stages_of(const RunView& view, const std::vector<int>& ranks) {
  const auto mesh = mesh_of(view);
  if (!mesh || mesh->degree(layout::Axis::pipeline) < 2) return {};
  std::set<int> stages;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= mesh->world_size()) continue;
    stages.insert(mesh->coordinate(layout::Axis::pipeline, base::Rank(rank)));
  }
  return {stages.begin(), stages.end()};
}

/// Whether the stage that waits least is among these; false where it is not known.
bool has_slowest_stage(const std::vector<double>& waits, const std::vector<int>& stages) {
  if (waits.size() < 2) return false;
  const auto slowest = std::min_element(waits.begin(), waits.end()) - waits.begin();
  return std::find(stages.begin(), stages.end(), static_cast<int>(slowest)) != stages.end();
}

}  // namespace

std::vector<Span> node_lines(const RunView& view, const std::vector<double>& stage_waits,
                             std::vector<NodeRanks> nodes, double median_ms) {
  const auto is_slower = [](const NodeRanks& one, const NodeRanks& other) {
    return one.slowest_ms < other.slowest_ms;
  };
  const bool has_times = std::isfinite(median_ms);
  // The nodes that hold the others up are looked for among many.
  if (has_times && nodes.size() > most_nodes) {
    std::stable_sort(nodes.begin(), nodes.end(),
                     [&](const auto& one, const auto& other) { return is_slower(other, one); });
  }
  std::vector<Span> lines;
  const auto slowest = std::max_element(nodes.begin(), nodes.end(), is_slower);
  for (std::size_t at = 0; at < std::min(nodes.size(), most_nodes); ++at) {
    const auto& node = nodes[at];
    const auto stages = stages_of(view, node.ranks);
    auto text = format("{}  ranks {}", base::printable(node.node), ranges_text(node.ranks));
    if (!stages.empty()) text += format("  stages {}", ranges_text(stages));
    if (node.slowest >= 0) {
      text += format("  slowest {}: {}", node.slowest, base::duration_text(node.slowest_ms / 1e3));
    }
    const bool is_slowest = has_times ? slowest - nodes.begin() == static_cast<std::ptrdiff_t>(at)
                                      : has_slowest_stage(stage_waits, stages);
    if (is_slowest && nodes.size() > 1) text += "  (the slowest)";
    lines.push_back({std::move(text)});
  }
  if (nodes.size() > most_nodes) {
    lines.push_back({format("and {} more nodes{}", nodes.size() - most_nodes,
                            has_times ? ", none of them slower" : ""),
                     Tone::faint});
  }
  if (has_times) {
    lines.push_back(
        {format("a rank computes {} of a step (median)", base::duration_text(median_ms / 1e3)),
         Tone::faint});
  }
  return lines;
}

}  // namespace trireme::report
