// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/failures.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::predict {

double best_interval(const SaveTimes& save, const FailureTimes& failures) {
  const double mean = failures.between;
  if (save.stall >= 2 * mean) return std::max(save.write, mean);
  const double ratio = save.stall / (2 * mean);
  const double young = std::sqrt(2 * save.stall * mean);
  return std::max(save.write, young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - save.stall);
}

double effective_share(double interval, const SaveTimes& save, const FailureTimes& failures) {
  // Periods of training and a stall are tried until one is free of failures (Daly, eq. 20). What is
  // still being written is lost with the period.
  const double mean = failures.between;
  const double period = interval + save.stall;
  const double tries = std::exp((failures.restart + save.write) / mean) * std::expm1(period / mean);
  return interval / (mean * tries);
}

}  // namespace trireme::predict
