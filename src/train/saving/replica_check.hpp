// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/comm/axis_groups.hpp"
#include "trireme/engine/engine.hpp"

#include <string>

namespace trireme::train {

/// Collective over the data- and the tensor-parallel group. Host-blocking: yes. Compares the bits
/// of the parameters that all members of a group hold, by hashes: replicas all of theirs,
/// tensor-parallel ranks those that are not cut. Returns nothing if they are alike, else a sentence
/// that names the first parameter that differs and the ranks that hold it unlike most others; the
/// same on all members. Moves 12 bytes a member while they are alike.
std::string replica_difference(engine::Engine& engine, const comm::AxisGroups& groups,
                               base::Rank rank);

}  // namespace trireme::train
