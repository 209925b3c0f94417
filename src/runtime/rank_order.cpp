// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/rank_order.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::runtime {
namespace {

/// Head of a process's text, which all processes must share; a line break and the switches follow.
std::string_view head_of(const std::string& word) {
  return std::string_view(word).substr(0, word.find('\n'));
}

layout::NetworkPath path_of(const comm::LaunchedProcess& process) {
  layout::NetworkPath path;
  const auto line_break = process.word.find('\n');
  if (line_break != std::string::npos && line_break + 1 < process.word.size()) {
    const auto switches = base::split(std::string_view(process.word).substr(line_break + 1), '\n');
    path.assign(switches.begin(), switches.end());
  }
  path.push_back(process.node);
  return path;
}

std::string cost_text(const layout::Mesh& mesh, const layout::NetworkCost& cost) {
  std::vector<std::string> parts;
  for (const auto& [axis, degree] : mesh.axes()) {
    parts.insert(parts.begin(), base::format("{} {}", layout::short_name(axis), cost.on(axis)));
  }
  return base::format("{}", base::join(parts, ", "));
}

}  // namespace

RankOrdering::RankOrdering(const JoinOptions& options, const base::Environment& environment)
    : options_(options) {
  // A distribution chosen by the user is kept.
  const bool by_hand = dealt_by_hand(environment);
  keeps_ =
      options.order == OrderRule::launcher || (options.order == OrderRule::automatic && by_hand);
  const auto& degrees = options.arrangement;
  word_ = base::format("{} {} {} {} {}", keeps_ ? "keep" : "order", degrees.pipeline.value_or(1),
                       degrees.data.value_or(0), degrees.context.value_or(1),
                       degrees.tensor.value_or(1));
  for (const auto& name : switches_above(environment)) word_ += "\n" + name;
}

comm::Numbering RankOrdering::numbering() {
  return {word_,
          [this](const std::vector<comm::LaunchedProcess>& processes) { return order(processes); }};
}

std::vector<int> RankOrdering::order(const std::vector<comm::LaunchedProcess>& processes) {
  std::vector<int> kept(processes.size());
  std::iota(kept.begin(), kept.end(), 0);
  const bool alike = std::all_of(processes.begin(), processes.end(), [&](const auto& process) {
    return head_of(process.word) == head_of(word_);
  });
  const bool one_node = std::all_of(processes.begin(), processes.end(), [&](const auto& process) {
    return process.node == processes.front().node;
  });
  const auto mesh = layout::arrange(options_.arrangement, static_cast<int>(processes.size()));
  if (keeps_ || !alike || one_node || !mesh.ok()) return kept;
  std::vector<layout::NetworkPath> paths;
  for (const auto& process : processes) paths.push_back(path_of(process));
  auto order = layout::order_ranks(*mesh, paths);
  sentence_ = order.changed()
                  ? base::format(
                        "ranks are ordered by the network, not as launched: hops between "
                        "neighbours {} instead of {} (run.order = slurm keeps the launcher's "
                        "order)",
                        cost_text(*mesh, order.cost), cost_text(*mesh, order.as_launched))
                  : base::format(
                        "the launcher's order of ranks suits the network: hops between "
                        "neighbours {}",
                        cost_text(*mesh, order.cost));
  return std::move(order.launched);
}

}  // namespace trireme::runtime
