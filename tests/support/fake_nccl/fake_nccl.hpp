// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/comm/nccl.hpp"
#include "trireme/device/arena.hpp"

#include "comm/nccl/abi.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trireme::testing {

/// Faults and delays of a library.
struct NcclFaults {
  /// How many looks it takes until a call has been done.
  int looks = 2;
  /// Communicators never come into being.
  bool never_meets = false;
  /// Nor do parts of a split.
  bool never_splits = false;
  /// Collectives and messages begin this much later.
  double late_seconds = 0;
  /// They never end, unless their communicator is aborted.
  bool never_ends = false;
  /// From the third look at a communicator with work under way on.
  std::optional<comm::nccl::Result> fails_later;
  /// Calls that a group may have.
  std::size_t calls_per_group = 2048;
  /// The call that fails: "ncclAllReduce".
  std::string refused_call;
  comm::nccl::Result refusal = comm::nccl::Result::internal_error;
};

class FakeComm;

/// Stands in for NCCL where there is no GPU: the same functions over MPI messages of the host, on
/// side streams of simulated GPUs. No call is done before somebody has looked as often as the
/// faults say, and who does not wait for that is refused. Sums are not in the order of ranks, are
/// in different orders in an all-reduce and in a reduce-scatter, and bf16 is rounded at every
/// addition: as it may be in NCCL. Streams hold one piece of work at a time, so that an order of
/// messages that would hang GPUs hangs here.
///
/// Misuse throws std::logic_error. Made and ended by all ranks together.
class FakeNccl {
 public:
  /// Two groups of the same ranks, over MPI.
  FakeNccl(std::unique_ptr<comm::ProcessGroup> hellos, std::unique_ptr<comm::ProcessGroup> data);
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;
  ~FakeNccl();

  comm::NcclLibrary library() const;

  NcclFaults faults;
  int ended_in_order = 0;
  int aborted = 0;
  int ids_made = 0;
  /// Ids of the last communicator that began with several.
  int ids_taken = 0;
  /// Neither ended nor aborted.
  std::size_t alive() const { return comms_.size(); }
  int buffers_registered = 0;
  int windows_registered = 0;
  /// Operations by whether all their memory was registered with their communicator.
  struct Uses {
    int in_known_memory = 0;
    int elsewhere = 0;
  };
  Uses collectives;
  Uses messages;
  /// Calls of collectives and messages by name, of those in a group each.
  std::map<std::string, int> calls;
  /// Allocated, and not freed.
  std::size_t allocations() const { return allocations_.size(); }

 private:
  friend class FakeComm;
  template <std::size_t slot>
  friend struct FakeCalls;
  struct Meeting;

  using Done = std::function<bool()>;

  comm::nccl::Result make_id(comm::nccl::UniqueId* id);
  void* allocate(std::size_t bytes);
  void release(void* data);
  /// From the begin of what it lies in; -1 for memory that the library has not allocated.
  std::int64_t offset_in_allocation(const void* data) const;
  FakeComm* begin_comm(int ranks, int rank, const comm::nccl::UniqueId& id);
  FakeComm* split(FakeComm& parent, int color, int key);
  FakeComm* add(std::shared_ptr<FakeComm> comm);
  std::shared_ptr<FakeComm> find(comm::nccl::Comm* comm) const;
  void remove(FakeComm& comm);
  void listen();
  void hear(int from, const std::vector<std::int32_t>& hello);
  void await_hello(int from);

  int self() const { return hellos_->rank(); }
  int size() const { return hellos_->size(); }

  std::size_t slot_;
  /// Never left with a message under way, whatever fails.
  std::unique_ptr<comm::ProcessGroup> hellos_;
  std::unique_ptr<comm::ProcessGroup> data_;
  std::map<FakeComm*, std::shared_ptr<FakeComm>> comms_;
  std::map<void*, device::Arena> allocations_;
  std::map<std::int32_t, Meeting> meetings_;
  struct Ear;
  std::vector<std::unique_ptr<Ear>> ears_;
  struct Letter;
  std::vector<std::unique_ptr<Letter>> letters_;
};

}  // namespace trireme::testing
