// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/device/tensor.hpp"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace trireme::comm {

enum class ReduceOp { sum, max };

/// Elements at which the members' parts of a tensor begin, and its end: ascending, one more than
/// members. Empty: equal parts.
using Cuts = std::vector<std::int64_t>;

/// Collective or message under way. A wait has the group's deadline; a peer that does not come ends
/// in base::Error (ExitCode::peer) that names operation, group, sequence number and the missing
/// ranks. A Work must be waited for, by the host or the stream; dropping one that is under way is a
/// defect.
class Work {
 public:
  class Operation {
   public:
    virtual ~Operation() = default;
    /// Makes progress without blocking; true once done.
    virtual bool poll() = 0;
    /// Blocks until done or the deadline.
    virtual void wait() = 0;
    /// Completion state, without making progress.
    virtual bool done() const = 0;
    /// See Work::wait_on_stream. An operation that can leave its end to the device keeps `self`
    /// until then.
    virtual void wait_on_stream(std::unique_ptr<Operation> self) { self->wait(); }
  };

  /// Already done.
  Work() = default;
  explicit Work(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}

  bool poll() {
    if (operation_ && operation_->poll()) operation_.reset();
    return !operation_;
  }
  void wait() {
    if (operation_) operation_->wait();
    operation_.reset();
  }
  /// Stream-ordered wait: work issued to the device from now on finds the tensors as wait() would
  /// leave them, and may change them. The host must not touch them before it has waited for the
  /// device. Blocks the host only until the operation is enqueued, which may take a handshake with
  /// peers but never waits for data; operations on host memory, and those whose data go through it,
  /// are waited for. The deadline holds, and errors are thrown as in wait(), while the host waits
  /// for the device or for another operation.
  void wait_on_stream() {
    if (auto* const operation = operation_.get()) operation->wait_on_stream(std::move(operation_));
    operation_.reset();
  }
  /// Completion state, for callers inside the progress engine: progress of other operations may
  /// have completed this one.
  bool done() const { return !operation_ || operation_->done(); }

 private:
  std::unique_ptr<Operation> operation_;
};

/// Offsets into the registered memory at which the members' operations work.
enum class Offsets {
  own,  ///< whatever each member's shapes give
  same  ///< their shapes are the same, so these are, too
};

/// Registration of memory with a group's library, for the lifetime of this object. Destroyed before
/// the group and before the memory, when no operation on that memory is under way, or after the one
/// under way has failed.
class Registration {
 public:
  Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  virtual ~Registration() = default;
};

/// Ordered ranks of one axis and their communication. All members call the same collectives in the
/// same order. Reductions of bf16 add in fp32 and round once; every sum is taken in the order of
/// the ranks (0 + 1 + 2 …) whatever the backend (except `nccl`, see nccl.hpp, and `library`, the
/// MPI library's own, which exists for comparison), so backends agree bitwise, and a reduce-scatter
/// followed by an all-gather equals an all-reduce bitwise. Tensors are contiguous and stay
/// untouched by the caller until the Work is done.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  /// "tp", "dp", "world"…: for errors and logs.
  const std::string& name() const { return name_; }
  /// World ranks of the members, by position.
  const std::vector<base::Rank>& ranks() const { return ranks_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// Position of this process.
  int rank() const { return rank_; }
  /// "local", "dry-run", "mpi", "shared", "staged", "nccl".
  virtual const char* backend() const = 0;
  /// Group of the same members for tensors in host memory: this group, unless its tensors lie on a
  /// device. Its collectives and this group's have one order.
  virtual ProcessGroup& host_group() { return *this; }
  /// Whether a device moves the data of collectives by itself once they are enqueued. Elsewhere the
  /// host's thread does, while it polls or waits.
  virtual bool moves_by_itself() const { return false; }

  /// Collective over the group. Host-blocking: no. In place.
  virtual Work start_all_reduce(const device::Tensor& x, ReduceOp op) = 0;
  /// Collective over the group. Host-blocking: no. `whole` is size() parts, `part` becomes the sum
  /// over the members of their part number rank(). `part` may be that part of `whole`. All members
  /// pass the same cuts.
  virtual Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                                    const Cuts& cuts) = 0;
  /// Collective over the group. Host-blocking: no. `part` may be its place inside `whole`. Cuts as
  /// above.
  virtual Work start_all_gather(const device::Tensor& part, const device::Tensor& whole,
                                const Cuts& cuts) = 0;
  /// Collective over the group. Host-blocking: no. Part i of `from` goes to rank i.
  virtual Work start_all_to_all(const device::Tensor& from, const device::Tensor& to) = 0;
  /// Collective over the group. Host-blocking: no.
  virtual Work start_broadcast(const device::Tensor& x, int root) = 0;
  /// Messages between two members match by (peer, tag) in the order of their start; the receiver
  /// must pass the exact size. Host-blocking: no.
  virtual Work start_send(const device::Tensor& x, int peer, int tag) = 0;
  virtual Work start_receive(const device::Tensor& x, int peer, int tag) = 0;
  /// Collective over the group. Host-blocking: yes.
  virtual void barrier() = 0;
  /// Collective over the group. Host-blocking: yes. Registers memory in which collectives will work
  /// again and again with GPUs and network, once; its parts may be used as before. Either all
  /// members register a collective's memory or none does. Null for a group whose library has no
  /// registration.
  virtual std::unique_ptr<Registration> register_memory(const device::Tensor& memory,
                                                        Offsets offsets) {
    static_cast<void>(memory), static_cast<void>(offsets);
    return nullptr;
  }
  /// Registration of memory for messages; see register_memory(). Host-blocking: no. Both ends of a
  /// message have registered its memory, or neither has.
  virtual std::unique_ptr<Registration> register_for_messages(const device::Tensor& memory) {
    static_cast<void>(memory);
    return nullptr;
  }

  // Blocking forms of the above; a device's tensors need no more than wait_on_stream().
  void all_reduce(const device::Tensor& x, ReduceOp op = ReduceOp::sum) {
    start_all_reduce(x, op).wait();
  }
  void reduce_scatter(const device::Tensor& whole, const device::Tensor& part,
                      const Cuts& cuts = {}) {
    start_reduce_scatter(whole, part, cuts).wait();
  }
  void all_gather(const device::Tensor& part, const device::Tensor& whole, const Cuts& cuts = {}) {
    start_all_gather(part, whole, cuts).wait();
  }
  void all_to_all(const device::Tensor& from, const device::Tensor& to) {
    start_all_to_all(from, to).wait();
  }
  void broadcast(const device::Tensor& x, int root) { start_broadcast(x, root).wait(); }
  void send(const device::Tensor& x, int peer, int tag) { start_send(x, peer, tag).wait(); }
  void receive(const device::Tensor& x, int peer, int tag) { start_receive(x, peer, tag).wait(); }

 protected:
  ProcessGroup(std::string name, std::vector<base::Rank> ranks, int rank)
      : name_(std::move(name)), ranks_(std::move(ranks)), rank_(rank) {}

 private:
  std::string name_;
  std::vector<base::Rank> ranks_;
  int rank_ = 0;
};

/// Group of one rank: collectives copy, and messages to oneself match.
std::unique_ptr<ProcessGroup> make_local_group(std::string name, base::Rank self);

enum class DryRunData {
  mirrored,  ///< the pretended ranks hold the same data as this one
  untouched  ///< tensors come from measuring arenas: nothing is read or written
};
/// Group of one process that stands in for rank `rank` of `ranks`. `moved` grows by the bytes of
/// the whole array of each collective, and of each message received, as traces count them; not if
/// it is null, or there is one rank.
std::unique_ptr<ProcessGroup> make_dry_run_group(std::string name, std::vector<base::Rank> ranks,
                                                 int rank, DryRunData data,
                                                 std::size_t* moved = nullptr);

}  // namespace trireme::comm
