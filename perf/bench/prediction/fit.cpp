// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::perf {
namespace {

double distance(const predict::Factors& one, const predict::Factors& other) {
  double sum = 0;
  for (std::size_t index = 0; index < one.size(); ++index) {
    const double difference = one[index] - other[index];
    sum += difference * difference;
  }
  return std::sqrt(sum);
}

}  // namespace

std::vector<std::size_t> rows_to_fit(const std::vector<const PublicRow*>& rows) {
  constexpr std::size_t part = 10;
  const auto count = std::max<std::size_t>(1, rows.size() / part);
  std::vector<predict::Factors> features;
  for (const auto* row : rows) features.push_back(predict::elasticities(row->step));
  std::vector<double> nearest(rows.size(), std::numeric_limits<double>::max());
  std::vector<std::size_t> chosen;
  while (chosen.size() < count) {
    std::size_t best = rows.size();
    double least = std::numeric_limits<double>::max();
    for (std::size_t candidate = 0; candidate < rows.size(); ++candidate) {
      if (std::find(chosen.begin(), chosen.end(), candidate) != chosen.end()) continue;
      double sum = 0;
      for (std::size_t row = 0; row < rows.size(); ++row) {
        sum += std::min(nearest[row], distance(features[candidate], features[row]));
      }
      if (sum >= least) continue;
      least = sum;
      best = candidate;
    }
    chosen.push_back(best);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      nearest[row] = std::min(nearest[row], distance(features[best], features[row]));
    }
  }
  return chosen;
}

}  // namespace trireme::perf
