#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/items.hpp"
#include "trireme/comm/process_group.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace trireme::checkpoint {

/// Collective over the group. Host-blocking: yes. If any rank brings a failure, all throw
/// AgreedError with the lowest such rank's code and text.
void agree(comm::ProcessGroup& group, const std::optional<base::Failure>& failure);

/// Collective over the group. Host-blocking: yes. `work` is this rank's own, without collectives
/// inside; then all agree.
void together(comm::ProcessGroup& group, const std::function<void()>& work);

/// Collective over the group. Host-blocking: yes. What every rank holds.
std::vector<std::vector<HeldBox>> exchange_held(comm::ProcessGroup& group,
                                                const std::vector<HeldBox>& mine);

}  // namespace trireme::checkpoint
