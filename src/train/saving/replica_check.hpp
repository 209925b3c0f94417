// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"

#include <string>

namespace trireme::train {

/// Collective over the data-parallel replicas. Host-blocking: yes. Compares the bits of the
/// parameters that all of them hold, by hashes. Returns nothing if they are alike, else a sentence
/// that names the first parameter that differs and the ranks that hold it unlike most others; the
/// same on all replicas. Moves 12 bytes a replica while they are alike.
std::string replica_difference(engine::Engine& engine, comm::ProcessGroup& data, base::Rank rank);

}  // namespace trireme::train
