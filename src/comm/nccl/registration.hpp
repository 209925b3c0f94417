// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"

#include "comm/nccl/comm_stream.hpp"

#include <memory>

namespace trireme::comm::nccl {

/// Memory to register, and the members that work in it.
struct RegistrationRequest {
  const device::Tensor& memory;
  Offsets offsets = Offsets::own;
  /// Group of the members, for agreements.
  ProcessGroup& host;
};

/// Registers memory with the communicator of a stream that is initialised and has nothing under
/// way; windows together with its peers. Null where the library cannot register it, or must not.
std::unique_ptr<Registration> register_memory(const Setting& setting, CommStream& comm_stream,
                                              const OperationLabel& label,
                                              const RegistrationRequest& request);

/// True if this memory can be registered with communicators of messages.
bool takes_buffers(const Setting& setting, const device::Tensor& memory);

/// True if NCCL has allocated the memory that begins here, with as many bytes or more.
bool is_allocated_by_nccl(const void* data, std::size_t bytes);

}  // namespace trireme::comm::nccl
