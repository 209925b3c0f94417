// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/calibrate.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/predict/step.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::predict {
namespace {

/// Standard deviations of the factors' logarithms, before any step is seen.
constexpr Factors prior{0.25, 0.35, 0.30, 0.35, 0.60};
/// Errors above this count linearly.
constexpr double robust_error = 0.05;

double squared(double value) {
  return value * value;
}

Factors exponentials(const Factors& logarithms) {
  Factors result{};
  std::transform(logarithms.begin(), logarithms.end(), result.begin(),
                 [](double value) { return std::exp(value); });
  return result;
}

/// Shares by their factors, which are the first ones.
constexpr std::array shares{&Shares::product, &Shares::attention, &Shares::memory, &Shares::link};

/// The largest share that a machine file may have.
double largest_share(std::size_t factor) {
  const auto name = base::format("share.{}", factor_names[factor]);
  const auto keys = machine_keys();
  const auto row = std::find_if(keys.begin(), keys.end(), [&](const MachineKey& each) {
    return each.key.full_name() == name;
  });
  return row->key.range.maximum.value();
}

/// [factor]: the largest that leaves a number which the machine may have.
Factors largest_factors(const MeasuredSteps& steps) {
  Factors largest;
  largest.fill(std::numeric_limits<double>::infinity());
  for (std::size_t factor = 0; factor < shares.size(); ++factor) {
    const double most = largest_share(factor);
    for (const auto* step : steps) {
      const auto& machine = step->machine;
      // Nothing multiplies faster than its peak; of a table of products the rates are no peaks.
      const double ceiling = factor == 0 && machine.products.empty() ? 1 : most;
      const double share = machine.share.*shares[factor];
      double limit = ceiling / share;
      // Quotients are rounded, up too.
      if (limit * share > ceiling) limit = std::nextafter(limit, 0.0);
      largest[factor] = std::min(largest[factor], limit);
    }
  }
  return largest;
}

/// A point of the descent.
struct Fitted {
  Factors logarithms{};
  double loss = 0;
};

class Fit {
 public:
  Fit(const MeasuredSteps& steps, const FittedFactors& fitted)
      : steps_(steps), fitted_(fitted), largest_(largest_factors(steps)) {}

  /// Coordinate by coordinate, from a start.
  Fitted descend(const Factors& start) const {
    Fitted best{start, loss(start)};
    Factors step{};
    for (std::size_t index = 0; index < step.size(); ++index) {
      if (fitted_[index]) step[index] = first_step;
    }
    while (*std::max_element(step.begin(), step.end()) > smallest_step) {
      for (std::size_t index = 0; index < step.size(); ++index) {
        if (step[index] <= smallest_step) continue;
        step[index] *= improve(best, index, step[index]) ? 1.2 : 0.5;
      }
    }
    return best;
  }

  Factors factors(const Factors& logarithms) const {
    auto result = exponentials(logarithms);
    for (std::size_t index = 0; index < result.size(); ++index) {
      if (fitted_[index]) result[index] = std::min(result[index], largest_[index]);
    }
    return result;
  }

 private:
  static constexpr double first_step = 0.2;
  static constexpr double smallest_step = 2e-3;

  bool improve(Fitted& best, std::size_t index, double step) const {
    for (const double sign : {1.0, -1.0}) {
      auto tried = best.logarithms;
      tried[index] += sign * step;
      const double found = loss(tried);
      if (found >= best.loss) continue;
      best = {tried, found};
      return true;
    }
    return false;
  }

  double loss(const Factors& logarithms) const {
    const auto tried = factors(logarithms);
    double sum = 0;
    for (const auto* step : steps_) {
      const double error = std::log(predicted_seconds(*step, tried) / step->seconds);
      sum += std::log1p(squared(error / robust_error));
    }
    for (std::size_t index = 0; index < prior.size(); ++index) {
      sum += 0.5 * squared(logarithms[index] / prior[index]);
    }
    return sum;
  }

  const MeasuredSteps& steps_;
  FittedFactors fitted_;
  Factors largest_;
};

double dot(const std::vector<double>& one, const std::vector<double>& other) {
  double sum = 0;
  for (std::size_t row = 0; row < one.size(); ++row) sum += one[row] * other[row];
  return sum;
}

}  // namespace

double predicted_seconds(const MeasuredStep& step, const Factors& factors) {
  auto machine = step.machine;
  for (std::size_t factor = 0; factor < shares.size(); ++factor) {
    machine.share.*shares[factor] *= factors[factor];
  }
  auto workload = step.workload;
  workload.program.launch_gap *= factors[4];
  return seconds_of(base::value_or_throw(predict_step(machine, workload)).total());
}

Factors elasticities(const MeasuredStep& step) {
  constexpr double change = 0.1;
  const double standing = predicted_seconds(step, no_change);
  Factors result{};
  for (std::size_t index = 0; index < result.size(); ++index) {
    auto factors = no_change;
    factors[index] = std::exp(change);
    result[index] = std::log(predicted_seconds(step, factors) / standing) / change;
  }
  return result;
}

FittedFactors determined_by(const MeasuredSteps& steps) {
  // A factor of e that moves steps by less than this, apart from the others, drowns in noise.
  constexpr double least_effect = 0.03;
  std::array<std::vector<double>, factor_names.size()> columns;
  for (const auto* step : steps) {
    const auto row = elasticities(*step);
    for (std::size_t factor = 0; factor < row.size(); ++factor) {
      columns[factor].push_back(row[factor]);
    }
  }
  FittedFactors determined{};
  for (std::size_t taken = 0; taken < std::min(steps.size(), determined.size()); ++taken) {
    std::size_t best = 0;
    double most = 0;
    for (std::size_t factor = 0; factor < columns.size(); ++factor) {
      const double effect = dot(columns[factor], columns[factor]);
      if (determined[factor] || effect <= most) continue;
      most = effect;
      best = factor;
    }
    if (std::sqrt(most / static_cast<double>(steps.size())) < least_effect) break;
    determined[best] = true;
    for (std::size_t factor = 0; factor < columns.size(); ++factor) {
      if (determined[factor]) continue;
      const double part = dot(columns[factor], columns[best]) / most;
      for (std::size_t row = 0; row < steps.size(); ++row) {
        columns[factor][row] -= part * columns[best][row];
      }
    }
  }
  return determined;
}

Factors fit(const MeasuredSteps& steps, const FittedFactors& fitted) {
  const Fit fit(steps, fitted);
  // The loss of a step far off is flat: from one start it may be the others that look far off.
  Fitted best = fit.descend({});
  for (const double product : {-0.2, 0.2}) {
    if (!fitted.front()) break;
    const auto other = fit.descend({product});
    if (other.loss < best.loss) best = other;
  }
  return fit.factors(best.logarithms);
}

}  // namespace trireme::predict
