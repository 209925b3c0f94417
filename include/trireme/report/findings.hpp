// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

namespace trireme::report {

/// What holds a run back: evidence from its record, and what to do.
struct Finding {
  std::string rule;  ///< "gradients", a row of docs/reports.md
  std::string text;
};

/// All rules, in the order in which they are applied.
std::vector<std::string> rule_names();

/// Findings of a run, by the few rules of docs/reports.md; a good run has none.
std::vector<Finding> findings_of(const RunView& run);

}  // namespace trireme::report
