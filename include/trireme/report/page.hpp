// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

namespace trireme::report {

/// Where and when a page was made.
struct PageOrigin {
  std::string tool_version;  ///< "trireme 0.1.0 (1a2b3c4)"
  std::string time;          ///< "2026-11-21 09:37:34 UTC"
};

/// HTML page of the runs, complete in itself: why they failed, if they did, pictures over each
/// other, what they took their time for, findings, memory, layout, starts and failures,
/// configurations, versions. Its size depends on the number of runs, not of their steps. Readable
/// without its script.
std::string page(std::span<const RunView> runs, const PageOrigin& origin);

/// Its figures and findings for programs: comparison_json(), with of each run {"findings":
/// [{"rule", "text"}], "cause": postmortem::to_json() of a failed run or null, "mean_step":
/// {"steady_steps", "parts_ms", "stage_waits", what moves in it, "stage_layers"}, "samples":
/// {"step", "temperature", "texts"} or null, "placement": record::to_json() or null}; "made_by",
/// "time".
base::Json page_json(std::span<const RunView> runs, const PageOrigin& origin);

}  // namespace trireme::report
