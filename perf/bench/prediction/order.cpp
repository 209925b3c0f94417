// SPDX-License-Identifier: Apache-2.0
#include "order.hpp"

#include <algorithm>
#include <map>

namespace trireme::perf {

Order order_of(const std::vector<Compared>& rows) {
  constexpr std::size_t least_layouts = 5;
  constexpr std::size_t first_choices = 3;
  std::map<std::string, std::vector<Compared>> cells;
  for (const auto& row : rows) cells[row.cell].push_back(row);
  Order order;
  for (auto& [name, cell] : cells) {
    if (cell.size() < least_layouts) continue;
    std::sort(cell.begin(), cell.end(), [](const Compared& one, const Compared& other) {
      return one.predicted < other.predicted;
    });
    const auto best = std::min_element(
        cell.begin(), cell.end(),
        [](const Compared& one, const Compared& other) { return one.measured < other.measured; });
    ++order.cells;
    order.hits += best - cell.begin() < static_cast<std::ptrdiff_t>(first_choices) ? 1 : 0;
    order.lost.push_back(cell.front().measured / best->measured - 1);
  }
  return order;
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  const auto place = static_cast<std::size_t>(part * static_cast<double>(values.size()));
  return values[std::min(place, values.size() - 1)];
}

}  // namespace trireme::perf
