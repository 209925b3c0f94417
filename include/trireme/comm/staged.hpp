// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/device.hpp"

#include <cstddef>
#include <memory>

namespace trireme::comm {

/// Group with the members of `host` for tensors that lie on a device whose memory the host cannot
/// reach: the input of a collective is copied to staging memory of the host, moved there by `host`,
/// and copied back, in pieces, so that copies and messages overlap. Sums are those of `host`, bit
/// by bit.
///
/// A start waits until the device has done what was issued before it, never for a peer. A Work is
/// done once its results have been issued to the device: work issued later finds them. Waits have
/// the deadline and the errors of `host`, whose collectives are these pieces. The device outlives
/// the group. Pieces of the default size are small enough that copies of one hide behind messages
/// of another, and large enough that neither is bound by latency; all members use the same size.
std::unique_ptr<ProcessGroup> make_staged_group(std::unique_ptr<ProcessGroup> host,
                                                device::Device& device,
                                                std::size_t piece_bytes = std::size_t{4} << 20);

}  // namespace trireme::comm
