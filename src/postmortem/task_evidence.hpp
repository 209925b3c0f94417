// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/postmortem/postmortem.hpp"

#include <cstddef>
#include <vector>

/// Records of the ends of tasks, as evidence. Private to the room.
namespace trireme::postmortem {

/// Events that a postmortem tells, of all tasks and logs.
inline constexpr std::size_t most_events = 1000;

/// Corrects the first cause by the records of tasks, or finds it there, and adds their ends to the
/// events. `lines`: logs of the last start.
void use_task_records(Postmortem& postmortem, const Evidence& evidence,
                      const std::vector<LogLine>& lines);

}  // namespace trireme::postmortem
