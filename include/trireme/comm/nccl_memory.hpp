#pragma once

#include "trireme/comm/nccl.hpp"
#include "trireme/device/device.hpp"

#include <memory>

namespace trireme::comm {

/// The same device, whose arenas for parameters and gradients NCCL allocates: only such memory can
/// be a symmetric window. Null where the library has no such windows (before 2.27). All arenas die
/// before `device`.
std::unique_ptr<device::Device> with_nccl_memory(device::Device& device,
                                                 const NcclLibrary& library);

}  // namespace trireme::comm
