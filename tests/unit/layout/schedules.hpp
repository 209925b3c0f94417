// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <catch2/catch.hpp>

namespace trireme::tests {

inline constexpr auto gpipe = layout::ScheduleKind::gpipe;
inline constexpr auto one_f = layout::ScheduleKind::one_forward_one_backward;
inline constexpr auto interleaved = layout::ScheduleKind::interleaved;

inline layout::Schedule made(layout::ScheduleKind kind, int stages, int micro_batches,
                             int virtual_stages = 1) {
  auto schedule = layout::make_schedule(kind, stages, micro_batches, virtual_stages);
  REQUIRE(schedule.ok());
  return *schedule;
}

}  // namespace trireme::tests
