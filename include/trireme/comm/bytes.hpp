// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Collectives over texts and other bytes of any length: nothing is truncated. Memory and traffic
/// of all_gather_bytes grow with the number of ranks times the longest contribution, so data of
/// only a few ranks is better broadcast by those.
namespace trireme::comm {

/// Collective over the group. Host-blocking: yes. The bytes of every rank, by position.
std::vector<std::string> all_gather_bytes(ProcessGroup& group, std::string_view mine);

/// Collective over the group. Host-blocking: yes. The bytes of every rank, by position, on position
/// 0; nothing on the others. Each rank sends what it has once, along a binomial tree: position 0
/// receives from log2 of the size.
std::vector<std::string> gather_bytes(ProcessGroup& group, std::string_view mine);

/// Collective over the group. Host-blocking: yes. The bytes of position `root`, everywhere; those
/// of other positions are ignored.
std::string broadcast_bytes(ProcessGroup& group, std::string_view from_root, int root = 0);

}  // namespace trireme::comm
