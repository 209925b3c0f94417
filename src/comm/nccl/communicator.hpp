#pragma once

#include "trireme/comm/nccl.hpp"
#include "trireme/device/device.hpp"

#include "comm/nccl/abi.hpp"
#include "comm/nccl/witness.hpp"
#include "comm/operation.hpp"
#include "comm/progress.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trireme::comm::nccl {

/// What all groups of a process use.
struct Setting {
  NcclLibrary library;
  Progress* progress = nullptr;
  device::Device* device = nullptr;
  double timeout_seconds = 0;
  base::Rank self;
  std::shared_ptr<const Witness> witness;
  NcclRegistration registration = NcclRegistration::none;

  const Api& api() const { return *library.api; }
};

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

/// A communicator and the stream on which its operations run, in the order of their tickets.
struct Lane {
  explicit Lane(const Setting& setting)
      : stream(setting.device->side_stream()), communicator(setting) {}

  std::unique_ptr<device::SideStream> stream;
  Communicator communicator;
  std::uint64_t tickets = 0;
  /// The ticket that may be issued next.
  std::uint64_t turn = 0;
};

}  // namespace trireme::comm::nccl
