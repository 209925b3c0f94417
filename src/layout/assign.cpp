// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/parallel_rules.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/layout/unit_chunks.hpp"

#include "layout/even_counts.hpp"

#include <algorithm>

namespace trireme::layout {

std::vector<int> even_counts(int layers, int positions) {
  std::vector<int> counts(static_cast<std::size_t>(positions), layers / positions);
  const int remainder = layers % positions;
  const auto first = counts.begin() + (positions - remainder) / 2;
  std::for_each(first, first + remainder, [](int& count) { ++count; });
  return counts;
}

base::Result<std::vector<std::vector<LayerRange>>> assign_layers(int layers,
                                                                 const Placement& placement,
                                                                 const std::vector<int>& given) {
  const auto status = check(
      ParallelArrangement{.pipeline = placement.stages,
                          .virtual_stages = placement.virtual_stages,
                          .stage_layers = std::vector<std::int64_t>(given.begin(), given.end()),
                          .layers = layers});
  if (!status.ok()) return status.failure();
  const int positions = placement.positions();
  const std::vector<int> counts = given.empty() ? even_counts(layers, positions) : given;
  std::vector<std::vector<LayerRange>> result(static_cast<std::size_t>(placement.stages));
  int begin = 0;
  for (int position = 0; position < positions; ++position) {
    const int end = begin + counts[static_cast<std::size_t>(position)];
    const int stage = placement.place_of(position).stage;
    result[static_cast<std::size_t>(stage)].push_back({begin, end});
    begin = end;
  }
  return result;
}

std::vector<LayerRange> unit_chunks(int layers) {
  std::vector<LayerRange> units{{0, 0}};
  for (int layer = 0; layer < layers; ++layer) units.push_back({layer, layer + 1});
  units.push_back({layers, layers});
  return units;
}

}  // namespace trireme::layout
