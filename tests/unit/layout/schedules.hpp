// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"
#include "trireme/layout/simulate.hpp"

#include <catch2/catch.hpp>

namespace trireme::tests {

inline constexpr auto gpipe = layout::ScheduleKind::gpipe;
inline constexpr auto one_f = layout::ScheduleKind::one_forward_one_backward;
inline constexpr auto interleaved = layout::ScheduleKind::interleaved;
inline constexpr auto zb_h1 = layout::ScheduleKind::zero_bubble_h1;
inline constexpr auto zb_h2 = layout::ScheduleKind::zero_bubble_h2;
inline constexpr auto zb_v = layout::ScheduleKind::zero_bubble_v;

inline layout::Schedule made(layout::ScheduleKind kind, int stages, int micro_batches,
                             int virtual_stages = 1) {
  auto schedule = layout::make_schedule(kind, stages, micro_batches, virtual_stages);
  REQUIRE(schedule.ok());
  return *schedule;
}

inline layout::Simulation simulated(const layout::Schedule& schedule,
                                    const layout::Costs& costs = {}) {
  auto simulation = layout::simulate(schedule, costs);
  REQUIRE(simulation.ok());
  return *simulation;
}

}  // namespace trireme::tests
