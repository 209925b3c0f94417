#pragma once

#include "trireme/checkpoint/items.hpp"
#include "trireme/comm/process_group.hpp"

#include <vector>

namespace trireme::checkpoint {

/// Collective over the group. Host-blocking: yes. What every rank holds.
std::vector<std::vector<HeldBox>> exchange_held(comm::ProcessGroup& group,
                                                const std::vector<HeldBox>& mine);

}  // namespace trireme::checkpoint
