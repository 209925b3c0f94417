// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/postmortem/postmortem.hpp"

#include <map>
#include <string>
#include <vector>

/// The lines with which each rank's log begins at a start: "rank 4 is task 5 of srun in job 12.0;
/// ...".
namespace trireme::postmortem {

/// The job of the start in these lines, "12.0"; empty when they name none.
std::string job_of(const std::vector<LogLine>& lines);

/// Ranks by the launcher's numbers of their tasks; those whose logs do not say so are left out.
std::map<int, int> ranks_of_tasks(const std::vector<LogLine>& lines);

}  // namespace trireme::postmortem
