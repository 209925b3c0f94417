// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/communicator.hpp"
#include "comm/nccl/enqueued_operations.hpp"

#include <cstdint>
#include <list>
#include <memory>

namespace trireme::comm::nccl {

struct CommStream;

/// Memory to register with a communicator before its next operation is enqueued: a communicator
/// that is made later registers earlier memory, too.
class StreamMemory {
 public:
  void add(const device::Tensor& memory);
  /// Registers one more with a communicator that is ready; false where all are registered.
  bool register_next(const Setting& setting, Communicator& communicator);
  void forget(const Setting& setting, CommStream& comm_stream, const device::Tensor& memory);

 private:
  struct Entry {
    device::Tensor memory;
    bool registered = false;
    void* handle = nullptr;
  };
  /// Entries in a list: NCCL may write a handle after its call has returned, so they never move.
  std::list<Entry> entries_;
};

/// A communicator and the stream on which its operations run, in the order of their sequence
/// numbers.
struct CommStream {
  CommStream(const Setting& setting, device::Priority priority)
      : stream(setting.device->side_stream(priority)), communicator(setting), enqueued(setting) {}

  std::unique_ptr<device::SideStream> stream;
  Communicator communicator;
  StreamMemory memory;
  /// Operations left to the device; ends before the communicator does.
  EnqueuedQueue enqueued;
  /// Count of assigned sequence numbers; where the other end assigns them, of those known.
  std::uint64_t sequence_count = 0;
  /// Sequence number that may be enqueued next.
  std::uint64_t next_to_enqueue = 0;
};

}  // namespace trireme::comm::nccl
