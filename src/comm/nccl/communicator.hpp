// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/core/operation.hpp"
#include "comm/nccl/setting.hpp"

#include <functional>
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
  /// Waits a moment for an orderly end; aborts a broken communicator, or while unwinding.
  ~Communicator();

  /// Makes the ncclComm by the given call.
  void begin(const Begin& call);
  Comm* raw() const { return raw_; }

  /// True once the last call has completed. Errors are in error() from then on.
  bool ready();
  /// Records the result of a call.
  void note(Result result, const char* call);
  /// "ncclAllReduce: remote process exited (connection closed by peer)"; empty while all is well.
  const std::string& error() const { return error_; }
  bool is_remote() const { return remote_; }

  /// Ends operations under way, on the device too; the communicator cannot be used afterwards.
  void abort();
  bool aborted() const { return aborted_; }

 private:
  void end_in_order();

  Setting setting_;
  Comm* raw_ = nullptr;
  std::string error_;
  bool remote_ = false;
  bool aborted_ = false;
};

/// The members of an operation's group but this rank.
std::vector<base::Rank> others(const OperationLabel& label, const Setting& setting);

/// Aborts a communicator in error and throws the operation's error: PeerError, with the watchdog's
/// text where it has found a dead peer.
[[noreturn]] void fail(const PendingOperation& operation, Communicator& communicator,
                       const Setting& setting);

/// Waits until a communicator has been made, together with its peers.
void await_init(Communicator& communicator, const OperationLabel& label, const Setting& setting);

}  // namespace trireme::comm::nccl
