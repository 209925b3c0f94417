// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/schedule.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>

namespace trireme::layout {

std::string_view name(ScheduleKind kind) {
  return schedule_names.at(static_cast<std::size_t>(kind));
}

PlacementKind placement_kind(ScheduleKind kind) {
  return kind == ScheduleKind::zero_bubble_v ? PlacementKind::v_shaped : PlacementKind::round_robin;
}

bool splits_backward(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::gpipe:
    case ScheduleKind::one_forward_one_backward:
    case ScheduleKind::interleaved:
      return false;
    case ScheduleKind::zero_bubble_h1:
    case ScheduleKind::zero_bubble_h2:
    case ScheduleKind::zero_bubble_v:
      return true;
  }
  return false;
}

bool has_virtual_stages(ScheduleKind kind) {
  return kind == ScheduleKind::interleaved || kind == ScheduleKind::zero_bubble_v;
}

const char* name(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return "forward";
    case ActionKind::backward:
      return "backward";
    case ActionKind::backward_input:
      return "backward_input";
    case ActionKind::backward_weight:
      return "backward_weight";
  }
  return "?";
}

base::Result<ScheduleKind> schedule_kind(std::string_view wanted) {
  const auto found = std::find(schedule_names.begin(), schedule_names.end(), wanted);
  if (found != schedule_names.end()) {
    return static_cast<ScheduleKind>(found - schedule_names.begin());
  }
  const std::vector<std::string> names(schedule_names.begin(), schedule_names.end());
  return base::usage_failure(base::format(
      "parallel.schedule = {} is not a schedule (it says in which order micro-batches pass the "
      "stages); try {}{}",
      wanted, base::join(names, ", "), base::did_you_mean(wanted, names)));
}

}  // namespace trireme::layout
