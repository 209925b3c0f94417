// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/device.hpp"

#include "support/simulated_gpu/device.hpp"

#include <functional>
#include <memory>

namespace trireme::testing {

/// A staged group over `host` on a simulated GPU, for tests whose tensors lie in host memory:
/// each operation's tensors are copied to the device before it, and back when it is done.
std::unique_ptr<comm::ProcessGroup> make_group_on_device(std::unique_ptr<comm::ProcessGroup> host,
                                                         Haste haste, std::size_t piece_bytes);

/// The same over any group that `make` makes for the device.
using MakeGroup = std::function<std::unique_ptr<comm::ProcessGroup>(device::Device&)>;
/// Whether a wait is one for the operation, or joins it and waits for the device.
enum class Ends { waited, joined };
std::unique_ptr<comm::ProcessGroup> make_group_on_device(const MakeGroup& make, Haste haste,
                                                         Ends ends = Ends::waited);

}  // namespace trireme::testing
