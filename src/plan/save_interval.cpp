// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/save_interval.hpp"

#include <algorithm>

namespace trireme::plan {

int nodes_of(const predict::Machine& machine, int ranks) {
  if (machine.node.computes_on_cores()) return 1;
  return (ranks + machine.node.gpus - 1) / machine.node.gpus;
}

std::optional<predict::FailureTimes> failure_times(const predict::Machine& machine, Tenure tenure,
                                                   int nodes) {
  constexpr double day = 24 * 3600;
  const auto& site = machine.site;
  const double days = tenure == Tenure::own ? site.mtbf_node_days : site.spot_mtbf_node_days;
  if (days == 0) return std::nullopt;
  return predict::FailureTimes{days * day / nodes, site.restart_seconds};
}

std::optional<predict::SaveTimes> save_times(const predict::Machine& machine, const RunSize& run,
                                             int nodes) {
  if (machine.node.disk_write == 0) return std::nullopt;
  const double of_node = run.state_bytes / nodes;
  const double write = of_node / machine.node.disk_write;
  if (!run.saves_beside || machine.node.host_copy == 0) return predict::SaveTimes{write, 0};
  return predict::SaveTimes{of_node / machine.node.host_copy, write};
}

double save_interval(const predict::SaveTimes& save, const predict::FailureTimes& failures) {
  return std::clamp(predict::best_interval(save, failures), shortest_save_interval,
                    std::max(longest_save_interval, save.write));
}

}  // namespace trireme::plan
