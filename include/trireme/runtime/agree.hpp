#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <string_view>

namespace trireme::runtime {

/// Collective over the group. Host-blocking: yes. If any rank failed, all throw an AgreedError
/// with the code and the text of the lowest failing rank.
void agree(comm::ProcessGroup& group, const base::Status& mine);

/// Collective over the group. Host-blocking: yes. All throw (ExitCode::launch) unless every rank
/// has the same value as the first; `what` says of what: "configuration".
void agree_equal(comm::ProcessGroup& group, std::uint64_t value, std::string_view what);

/// Collective over the group. Host-blocking: yes. The largest of all ranks' numbers.
std::int32_t agree_largest(comm::ProcessGroup& group, std::int32_t mine);

}  // namespace trireme::runtime
