// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/predict/calibrate.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::apps {

/// Error of predictions: part of the measured time by which they are off.
struct PredictionErrors {
  double median = 0;
  double worst = 0;
};

/// A machine file's factors, fitted to runs.
struct Calibration {
  std::size_t runs = 0;
  /// Factors that the runs determine; the others stay.
  predict::FittedFactors determined{};
  predict::Factors factors = predict::no_change;
  predict::Machine before;
  predict::Machine after;
  /// Errors of runs that the factors were not fitted on, a fifth of them at a time.
  PredictionErrors held_out_before;
  PredictionErrors held_out_after;
};

/// Failures (usage): a run's configuration or record cannot be read, it has too few steps, or its
/// step cannot be predicted; there are fewer than two runs.
base::Result<Calibration> calibrate(const std::vector<std::filesystem::path>& runs,
                                    const std::filesystem::path& machine);

/// Old and new values of the machine file's keys, and the error on held-out runs.
std::string text(const Calibration& calibration);
base::Json to_json(const Calibration& calibration);

}  // namespace trireme::apps
