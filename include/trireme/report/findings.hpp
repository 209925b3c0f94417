// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

namespace trireme::report {

/// Something that holds a run back: evidence from its record, and what to do.
struct Finding {
  std::string rule;  ///< "gradients", a row of docs/reports.md
  std::string text;
};

/// All rules, in the order in which they are applied.
std::vector<std::string> rule_names();

/// Findings of a run, by the few rules of docs/reports.md; a good run has none. What has to do with
/// layout, machine or time is judged by the newest start alone.
std::vector<Finding> findings_of(const RunView& run);

/// False where the newest start has too few steps for findings about time.
bool tells_of_time(const RunView& run);

}  // namespace trireme::report
