// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

/// A step of a family: one model, program and layout, on any number of GPUs.
struct ScaledStep {
  std::string family;
  int ranks = 0;
  double batch = 0;
  double predicted = 0;
  double measured = 0;
};

/// Errors of ratios between a step and that of its family on the fewest GPUs.
struct Scaling {
  /// Steps of the same batch.
  std::vector<double> strong;
  /// Steps of the same batch on each GPU.
  std::vector<double> weak;
};
Scaling scaling_of(const std::vector<ScaledStep>& steps);

}  // namespace trireme::perf
