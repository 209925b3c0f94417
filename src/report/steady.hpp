// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include <vector>

namespace trireme::report {

/// Of the finite ones; telemetry::absent if there are none.
double median(std::vector<double> numbers);

/// Numbers of the first steps of each start, which are slower, left out; all where there are no
/// others.
std::vector<std::size_t> steady_indices(const telemetry::RunRecord& record);

/// Mean of a number over the steady steps that have it; telemetry::absent if none has.
double mean_steady(const telemetry::RunRecord& record, double telemetry::StepLine::*number);

/// One number of the steady steps.
std::vector<double> steady_numbers(const telemetry::RunRecord& record,
                                   double telemetry::StepLine::*number);

}  // namespace trireme::report
