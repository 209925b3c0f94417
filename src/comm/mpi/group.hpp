// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include "comm/core/progress_engine.hpp"
#include "comm/mpi/operation.hpp"
#include "comm/mpi/rounds.hpp"

namespace trireme::comm {

/// A group over MPI messages. Every reduction is an exchange of parts and a local sum in the order
/// of ranks, so its bits are those of every other backend. What is small, and so what hosts tell
/// each other between steps, takes messages to few ranks (rounds.hpp); what is long goes to each
/// rank that needs it at once.
class MpiGroup : public ProcessGroup {
 public:
  struct Wiring {
    ProgressEngine* progress;
    mpi::Communicator collectives;
    mpi::Communicator messages;
    double timeout_seconds;
    Relays relays = Relays::among_many;
  };
  MpiGroup(std::string group_name, std::vector<base::Rank> members, Wiring wiring);
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;
  ~MpiGroup() override;

  const char* backend() const override { return "mpi"; }

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

 protected:
  MPI_Comm communicator() const { return wiring_.collectives.get(); }

 private:
  struct Parts;
  struct Round;

  std::size_t count() const { return static_cast<std::size_t>(size()); }
  Position position() const { return {rank(), size(), wiring_.relays}; }
  /// The rank `distance` places after this one, and before it.
  int after(int distance) const { return position().after(distance); }
  int before(int distance) const { return position().before(distance); }

  Work collective(const char* operation, std::size_t bytes, std::vector<Stage> stages,
                  BufferPool::Lease staging);
  Work message(const char* operation, const SendReceive& step, int peer, int tag);
  Work small_all_reduce(const device::Tensor& x, ReduceOp op);
  Work combine(const device::Tensor& x, ReduceOp op);
  BufferPool::Lease add_reduction(std::vector<Stage>& stages, const Parts& parts, ReduceOp op,
                                  std::byte* out);
  Stage reduction_round(const Parts& parts, ReduceOp op, std::byte* out, const Round& round) const;
  std::vector<Stage> gather(std::byte* whole, const std::vector<std::size_t>& begins) const;
  Stage exchange_parts(std::byte* whole, const std::vector<std::size_t>& begins) const;

  Wiring wiring_;
  int tag_limit_;
  BufferPool staging_;
  bool broken_ = false;
  /// Collectives have numbers of their own: all members start the same ones, but not messages.
  std::uint64_t collectives_started_ = 0;
  std::uint64_t messages_started_ = 0;
};

/// Group that uses the MPI library's own collectives, blocking, for comparison in measurements.
/// Sums are in an order of the library's choice, bf16 is refused.
std::unique_ptr<ProcessGroup> make_library_group(std::string name, std::vector<base::Rank> ranks,
                                                 MpiGroup::Wiring wiring);

}  // namespace trireme::comm
