// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/nccl.hpp"
#include "trireme/device/device.hpp"

#include <memory>
#include <vector>

namespace trireme::comm {

/// Device whose arenas for these purposes NCCL allocates, otherwise like `device`: only such memory
/// can be a symmetric window. Null where the library has no such windows (before 2.27). All arenas
/// die before `device`.
std::unique_ptr<device::Device> with_nccl_memory(device::Device& device, const NcclLibrary& library,
                                                 std::vector<device::Purpose> purposes);

}  // namespace trireme::comm
