// SPDX-License-Identifier: Apache-2.0
#include "scaling.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace trireme::perf {
namespace {

/// Errors within each family whose steps have the same `size`.
template <typename Size>
std::vector<double> ratio_errors(const std::vector<ScaledStep>& steps, const Size& size) {
  std::map<std::pair<std::string, double>, std::vector<const ScaledStep*>> groups;
  for (const auto& step : steps) groups[{step.family, size(step)}].push_back(&step);
  std::vector<double> errors;
  for (const auto& [key, group] : groups) {
    const auto* const fewest = *std::min_element(
        group.begin(), group.end(),
        [](const auto* one, const auto* other) { return one->ranks < other->ranks; });
    for (const auto* step : group) {
      if (step->ranks == fewest->ranks) continue;
      const double predicted = step->predicted / fewest->predicted;
      const double measured = step->measured / fewest->measured;
      errors.push_back(std::abs(predicted / measured - 1));
    }
  }
  return errors;
}

}  // namespace

Scaling scaling_of(const std::vector<ScaledStep>& steps) {
  return {ratio_errors(steps, [](const ScaledStep& step) { return step.batch; }),
          ratio_errors(steps, [](const ScaledStep& step) { return step.batch / step.ranks; })};
}

}  // namespace trireme::perf
