// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/runtime/range.hpp"
#include "device/cpu/runtime/team.hpp"
#include "device/denormals.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::device::cpu {

/// body(part) for each of `parts` parts, on as many threads of the team, this one among them.
/// Denormals are flushed in each. The body throws nothing. Who takes which part never changes a
/// result, because no kernel lets a sum depend on how work was cut.
template <typename Body>
void parallel(Team& team, int parts, const Body& body) {
  const auto flushed = [&body](int part) {
    flush_denormals();
    body(part);
  };
  if (parts == 1) {
    flushed(0);
  } else {
    team.run(parts, flushed);
  }
}

/// body(range) over [0, count), cut at multiples of `grain` into at most as many parts as the team
/// has threads. One part runs here, without waking other threads: choose the grain so that it is
/// worth a wake-up.
template <typename Body>
void parallel_for(Team& team, std::int64_t count, std::int64_t grain, const Body& body) {
  const auto grains = (count + grain - 1) / grain;
  if (grains == 0) return;
  const int parts = static_cast<int>(std::min<std::int64_t>(team.size(), grains));
  parallel(team, parts, [&](int part) { body(part_of(count, grain, parts, part)); });
}

}  // namespace trireme::device::cpu
