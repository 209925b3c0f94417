// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include <vector>

namespace trireme::report {

/// Median of the finite ones; telemetry::absent if there are none.
double median(std::vector<double> numbers);

/// Indices of the steps of one start without its first ones, which are slower: of the newest start
/// that has others, since layout and machine may change with each. All where no start has others.
std::vector<std::size_t> steady_indices(const telemetry::RunRecord& record);

/// Steps, evaluations, saves, events and uses of cores of the newest start alone, to which the
/// recorded configuration and placement belong; of one that has made no step there are none.
telemetry::RunRecord newest_start(const telemetry::RunRecord& record);

/// Mean of a number over the steady steps that have it; telemetry::absent if none has.
double mean_steady(const telemetry::RunRecord& record, double telemetry::StepLine::*number);

/// One number of the steady steps.
std::vector<double> steady_numbers(const telemetry::RunRecord& record,
                                   double telemetry::StepLine::*number);

}  // namespace trireme::report
