// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/topology/binding.hpp"
#include "trireme/topology/machine.hpp"
#include "trireme/topology/placement.hpp"

#include <string>

namespace trireme::topology {

/// The machine as an indented tree for people; ends with a line break.
std::string tree_text(const Machine& machine);

/// Machine as JSON; names and indices as in Machine.
base::Json to_json(const Machine& machine);

/// One line per local rank with its reason, then notes and warnings.
std::string plan_text(const BindingPlan& plan);
base::Json to_json(const BindingPlan& plan);

/// A table with one line for each local rank, then the reasons by rank, notes and warnings.
std::string placement_text(const Machine& machine, const Placement& placement);
/// Placement as JSON.
base::Json to_json(const Machine& machine, const Placement& placement);
/// Picture (SVG) of NUMA nodes with their ranks, below each rank its GPU and NICs, a frame around
/// devices that share a PCIe switch, and unused devices.
std::string placement_svg(const Machine& machine, const Placement& placement);

}  // namespace trireme::topology
