// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include "trireme/base/error.hpp"
#include "trireme/predict/step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::perf {
namespace {

/// Standard deviations of the factors' logarithms, before any row is seen.
constexpr Constants prior{0.25, 0.35, 0.30, 0.35, 0.60};
/// Errors above this count linearly.
constexpr double robust_error = 0.05;

double squared(double value) {
  return value * value;
}

Constants factors(const Constants& logarithms) {
  Constants result{};
  std::transform(logarithms.begin(), logarithms.end(), result.begin(),
                 [](double value) { return std::exp(value); });
  return result;
}

/// Nothing multiplies faster than its peak.
double within_peak(const std::vector<const PublicRow*>& rows, double factor) {
  for (const auto* row : rows) factor = std::min(factor, 1 / row->machine.share.product);
  return factor;
}

double loss(const std::vector<const PublicRow*>& rows, const Constants& logarithms) {
  auto constants = factors(logarithms);
  constants[0] = within_peak(rows, constants[0]);
  double sum = 0;
  for (const auto* row : rows) {
    const double error = std::log(predicted_seconds(*row, constants) / row->seconds);
    sum += std::log1p(squared(error / robust_error));
  }
  for (std::size_t index = 0; index < prior.size(); ++index) {
    sum += 0.5 * squared(logarithms[index] / prior[index]);
  }
  return sum;
}

/// Change of the step's logarithm for one of each factor's.
Constants elasticities(const PublicRow& row) {
  constexpr double change = 0.1;
  const double standing = predicted_seconds(row, no_change);
  Constants result{};
  for (std::size_t index = 0; index < result.size(); ++index) {
    auto constants = no_change;
    constants[index] = std::exp(change);
    result[index] = std::log(predicted_seconds(row, constants) / standing) / change;
  }
  return result;
}

double distance(const Constants& one, const Constants& other) {
  double sum = 0;
  for (std::size_t index = 0; index < one.size(); ++index) {
    sum += squared(one[index] - other[index]);
  }
  return std::sqrt(sum);
}

}  // namespace

double predicted_seconds(const PublicRow& row, const Constants& constants) {
  auto machine = row.machine;
  machine.share.product *= constants[0];
  machine.share.attention *= constants[1];
  machine.share.memory *= constants[2];
  machine.share.link *= constants[3];
  auto workload = row.workload;
  workload.program.launch_gap *= constants[4];
  return predict::seconds_of(
      base::value_or_throw(predict::predict_step(machine, workload)).total());
}

std::vector<std::size_t> rows_to_fit(const std::vector<const PublicRow*>& rows) {
  constexpr std::size_t part = 10;
  const auto count = std::max<std::size_t>(1, rows.size() / part);
  std::vector<Constants> features;
  for (const auto* row : rows) features.push_back(elasticities(*row));
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

namespace {

struct Fitted {
  Constants logarithms{};
  double loss = 0;
};

/// Coordinate by coordinate, from a start.
Fitted descend(const std::vector<const PublicRow*>& rows, const Constants& start) {
  Constants best = start;
  double least = loss(rows, best);
  Constants step{};
  step.fill(0.2);
  constexpr double smallest_step = 2e-3;
  while (*std::max_element(step.begin(), step.end()) > smallest_step) {
    for (std::size_t index = 0; index < best.size(); ++index) {
      if (step[index] <= smallest_step) continue;
      bool is_better = false;
      for (const double sign : {1.0, -1.0}) {
        auto tried = best;
        tried[index] += sign * step[index];
        const double found = loss(rows, tried);
        if (found >= least) continue;
        least = found;
        best = tried;
        is_better = true;
        break;
      }
      step[index] *= is_better ? 1.2 : 0.5;
    }
  }
  return {best, least};
}

}  // namespace

Constants fit(const std::vector<const PublicRow*>& rows) {
  // The loss of a row far off is flat: from one start it may be the others that look far off.
  Fitted best = descend(rows, {});
  for (const double product : {-0.2, 0.2}) {
    const auto other = descend(rows, {product});
    if (other.loss < best.loss) best = other;
  }
  auto constants = factors(best.logarithms);
  constants[0] = within_peak(rows, constants[0]);
  return constants;
}

}  // namespace trireme::perf
