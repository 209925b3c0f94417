// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/record/run_placement.hpp"
#include "trireme/runtime/cluster.hpp"

namespace trireme::runtime {

/// Collective over the world. Host-blocking: yes. On the first rank the places of all; no ranks on
/// the others.
record::RunPlacement gather_placement(const Cluster& cluster);

}  // namespace trireme::runtime
