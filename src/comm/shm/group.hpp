// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include "comm/core/progress_engine.hpp"
#include "comm/shm/operation.hpp"
#include "comm/shm/p2p.hpp"
#include "comm/shm/store_choice.hpp"
#include "comm/watchdog/node_status.hpp"

namespace trireme::comm {

/// A group whose members share memory.
class SharedGroup final : public ProcessGroup {
 public:
  struct Wiring {
    ProgressEngine* progress;
    NodeStatus* status;
    std::unique_ptr<SharedMemory> memory;
    /// Local ranks by position.
    std::vector<base::LocalRank> members;
    double timeout_seconds;
  };
  static std::size_t bytes_needed(int ranks);

  SharedGroup(std::string group_name, std::vector<base::Rank> members, int self, Wiring wiring);

  const char* backend() const override { return "shared"; }

  /// Collective over the group. Host-blocking: yes. Before that all stores are ordinary.
  void choose_stores(Stores wish, CoreSharing sharing);

  Work start_all_reduce(const device::Tensor& x, ReduceOp op) override;
  Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                            const Cuts& cuts) override;
  Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                        const Cuts& cuts) override;
  Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) override;
  Work start_broadcast(const device::Tensor& x, int root) override;
  Work start_send(const device::Tensor& x, int peer, int tag) override;
  Work start_receive(const device::Tensor& x, int peer, int tag) override;
  void barrier() override;

 private:
  /// Collective over the group. For arrays of so many bytes; the same on all members.
  StoreSeconds seconds_of_stores(std::size_t bytes);
  Work start(const char* operation, SharedPlan plan);
  OperationLabel message_label(const char* operation, const device::Tensor& x, int peer, int tag);
  Work small_all_reduce(const device::Tensor& x, ReduceOp op);

  Wiring wiring_;
  SharedChannel channel_;
  SharedP2p p2p_;
  StoreChoice stores_;
  SharedOperation::Rounds next_{0, 0};
  std::uint64_t collectives_started_ = 0;
  std::uint64_t messages_started_ = 0;
};

}  // namespace trireme::comm
