// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/binding.hpp"

#include <catch2/catch.hpp>

namespace trireme::tests {

/// Properties of every plan on every machine, for any number of ranks.
inline void check_plan(const topology::Machine& machine, const topology::BindingPlan& plan,
                       int ranks) {
  const auto cores = topology::allowed_cores(machine);
  const bool enough = ranks <= static_cast<int>(cores.size());
  REQUIRE(static_cast<int>(plan.slots.size()) == ranks);
  CHECK(plan.warnings.empty() == enough);
  topology::CpuSet used;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& slot = plan.slots[static_cast<std::size_t>(rank)];
    CHECK(slot.local_rank == rank);
    CHECK_FALSE(slot.reason.empty());
    REQUIRE_FALSE(slot.pus.empty());
    CHECK(machine.allowed.contains(slot.pus));
    CHECK(slot.pus.contains(topology::CpuSet(slot.compute_pus)));
    // Equal work for equal ranks.
    CHECK(slot.compute_pus.size() == plan.slots.front().compute_pus.size());
    std::size_t whole_cores = 0;
    for (const auto& core : machine.cores) {
      if (!slot.pus.intersects(core.pus)) continue;
      ++whole_cores;
      CHECK(slot.pus.contains(core.pus.intersected(machine.allowed)));
    }
    if (enough) {
      CHECK_FALSE(slot.shared);
      CHECK_FALSE(used.intersects(slot.pus));
      CHECK(slot.compute_pus.size() == whole_cores);
    } else {
      CHECK(slot.compute_pus.size() == 1);
    }
    used = used.united(slot.pus);
  }
}

}  // namespace trireme::tests
