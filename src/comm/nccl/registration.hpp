#pragma once

#include "trireme/device/device.hpp"

#include "comm/nccl/communicator.hpp"

#include <memory>

namespace trireme::comm::nccl {

/// Memory, and who works in it.
struct Shared {
  const device::Tensor& memory;
  Offsets offsets = Offsets::own;
  /// The members, for what they must agree on.
  ProcessGroup& host;
};

/// Tells a lane's communicator that has come into being, and has nothing under way, of memory; with
/// windows together with its peers. Null where the library cannot be told, or must not.
std::unique_ptr<Registration> register_memory(const Setting& setting, Lane& lane,
                                              const OperationLabel& label, const Shared& shared);

/// Whether messages' communicators can be told of this memory.
bool takes_buffers(const Setting& setting, const device::Tensor& memory);

/// Whether NCCL has allocated the memory that begins here, with as many bytes or more.
bool is_allocated_by_nccl(const void* data, std::size_t bytes);

}  // namespace trireme::comm::nccl
