// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/balance.hpp"

#include "trireme/base/contract.hpp"

#include "layout/even_counts.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::layout {
namespace {

std::size_t stage_at(const Placement& placement, std::size_t position) {
  return static_cast<std::size_t>(placement.place_of(static_cast<int>(position)).stage);
}

/// The work of each stage, in layers.
std::vector<double> loads(const std::vector<int>& counts, const Placement& placement,
                          double head_layers) {
  std::vector<double> loads(static_cast<std::size_t>(placement.stages), 0.0);
  for (std::size_t at = 0; at < counts.size(); ++at) loads[stage_at(placement, at)] += counts[at];
  loads[static_cast<std::size_t>(placement.last_stage())] += head_layers;
  return loads;
}

}  // namespace

std::vector<int> balanced_counts(int layers, const Placement& placement, double head_layers) {
  TRIREME_EXPECT(layers >= placement.positions() && head_layers >= 0.0,
                 "each position holds a layer at first");
  auto counts = even_counts(layers, placement.positions());
  const auto last = counts.size() - 1;
  const auto stage_of = [&](std::size_t at) { return stage_at(placement, at); };
  const auto work = [&](std::size_t at) { return counts[at] + (at == last ? head_layers : 0.0); };
  const auto may_give = [&](std::size_t at) {
    return counts[at] > (at == last && last > 0 && head_layers >= 1.0 ? 0 : 1);
  };
  while (true) {
    const auto load = loads(counts, placement, head_layers);
    // Tie of two stages: the later one, because early ones hold more micro-batches at a time.
    std::size_t least = 0;
    for (std::size_t stage = 0; stage < load.size(); ++stage) {
      if (load[stage] <= load[least]) least = stage;
    }
    const auto most =
        static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
    // The receiving stage must end up with less work than the giving one had before.
    if (load[least] + 1.0 >= load[most]) return counts;
    std::size_t from = counts.size();
    std::size_t to = counts.size();
    for (std::size_t at = 0; at < counts.size(); ++at) {
      if (stage_of(at) == most && may_give(at) && (from > last || work(at) >= work(from))) {
        from = at;
      }
      if (stage_of(at) == least && (to > last || work(at) <= work(to))) to = at;
    }
    if (from > last) return counts;
    --counts[from];
    ++counts[to];
  }
}

double balance(const std::vector<int>& counts, const Placement& placement, double head_layers) {
  const auto load = loads(counts, placement, head_layers);
  const double sum = std::accumulate(load.begin(), load.end(), 0.0);
  return sum / (placement.stages * *std::max_element(load.begin(), load.end()));
}

}  // namespace trireme::layout
