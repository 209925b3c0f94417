#pragma once

#include "comm/nccl/joined.hpp"
#include "comm/nccl/setting.hpp"
#include "comm/operation.hpp"

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace trireme::comm::nccl {

/// Owner of an ncclComm whose calls do not block: each begins something, and the next may come once
/// that is done.
class Communicator {
 public:
  using Begin = std::function<Result(Comm** comm, Config* config)>;

  explicit Communicator(const Setting& setting) : setting_(setting) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  /// Waits a moment for an orderly end; aborts when this is broken, or while unwinding.
  ~Communicator();

  /// Makes the ncclComm by a call that says how.
  void begin(const Begin& call);
  Comm* raw() const { return raw_; }

  /// Whether the last call has been done. What went wrong since is in trouble() from then on.
  bool ready();
  /// Notes what a call returned.
  void note(Result result, const char* call);
  /// "ncclAllReduce: remote process exited (connection closed by peer)"; empty while all is well.
  const std::string& trouble() const { return trouble_; }
  bool is_remote() const { return remote_; }

  /// Ends what is under way, on the device too; nothing is done with it afterwards.
  void abort();
  bool aborted() const { return aborted_; }

 private:
  void end_in_order();

  Setting setting_;
  Comm* raw_ = nullptr;
  std::string trouble_;
  bool remote_ = false;
  bool aborted_ = false;
};

/// The members of an operation's group but this rank.
std::vector<base::Rank> others(const OperationLabel& label, const Setting& setting);

/// Aborts a communicator in trouble and throws what that means to an operation: PeerError, in
/// better words where the watch knows of a dead peer.
[[noreturn]] void fail(const PendingOperation& operation, Communicator& communicator,
                       const Setting& setting);

/// Waits until a communicator has been made, together with its peers.
void await_birth(Communicator& communicator, const OperationLabel& label, const Setting& setting);

struct Lane;

/// Memory that a lane's communicator is told of before the next operation is issued there: one that
/// is made late hears of what was there before it.
class LaneMemory {
 public:
  void add(const device::Tensor& memory);
  /// Tells a communicator that is ready of one more; false where it knows all.
  bool tell_next(const Setting& setting, Communicator& communicator);
  void forget(const Setting& setting, Lane& lane, const device::Tensor& memory);

 private:
  struct Known {
    device::Tensor memory;
    bool told = false;
    void* handle = nullptr;
  };
  /// NCCL may write a handle when its call has returned: it stays at its place.
  std::list<Known> all_;
};

/// A communicator and the stream on which its operations run, in the order of their tickets.
struct Lane {
  Lane(const Setting& setting, device::Priority priority)
      : stream(setting.device->side_stream(priority)), communicator(setting), joined(setting) {}

  std::unique_ptr<device::SideStream> stream;
  Communicator communicator;
  LaneMemory memory;
  /// Ends before the communicator does.
  Joined joined;
  /// Given out; where the other end gives them, those that are known of.
  std::uint64_t tickets = 0;
  /// The ticket that may be issued next.
  std::uint64_t turn = 0;
};

}  // namespace trireme::comm::nccl
