// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

/// Few factors on the numbers of a machine file, fitted to steps that were measured.
namespace trireme::predict {

/// On the file's shares, and on the time in which the host issues an operation.
inline constexpr std::array<std::string_view, 5> factor_names{"product", "attention", "memory",
                                                              "link", "gap"};
using Factors = std::array<double, factor_names.size()>;
inline constexpr Factors no_change{1, 1, 1, 1, 1};

/// A step that can be predicted.
struct MeasuredStep {
  Machine machine;
  Workload workload;
  double seconds = 0;
};
using MeasuredSteps = std::vector<const MeasuredStep*>;

/// Seconds of the step with these factors.
double predicted_seconds(const MeasuredStep& step, const Factors& factors);

/// [factor]: change of the predicted step's logarithm for one of the factor's.
Factors elasticities(const MeasuredStep& step);

/// [factor]: whether it is fitted, or stays 1.
using FittedFactors = std::array<bool, factor_names.size()>;
inline constexpr FittedFactors all_factors{true, true, true, true, true};
/// Factors that these steps tell apart: what each changes of them, less what those already taken
/// do, is more than noise (columns of the elasticities, orthogonalised in descending order), and
/// there are no more than steps.
FittedFactors determined_by(const MeasuredSteps& steps);

/// Least robust distance in log space, each factor held to 1 by a prior: what the steps hardly
/// determine hardly moves.
Factors fit(const MeasuredSteps& steps, const FittedFactors& fitted = all_factors);

}  // namespace trireme::predict
