// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/telemetry/spans.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

class ProgressEngine;

/// Names of an operation, for the error at its deadline.
struct OperationLabel {
  std::string_view operation;  ///< static text: "all_reduce"
  std::string_view group;      ///< lives as long as the operation
  std::span<const base::Rank> members;
  std::uint64_t number = 0;  ///< from 1: collectives of the group, or this rank's messages
  double timeout_seconds = 0;
  int peer = -1;          ///< position of the other end of a message
  int tag = -1;           ///< of a message
  std::size_t bytes = 0;  ///< of the whole array, for traces
};

/// An operation under way. The ProgressEngine drives all operations of a process together, so that
/// two ranks that wait in different orders still finish.
class PendingOperation : public Work::Operation {
 public:
  PendingOperation(ProgressEngine& progress, const OperationLabel& label);
  PendingOperation(const PendingOperation&) = delete;
  PendingOperation& operator=(const PendingOperation&) = delete;
  ~PendingOperation() override;

  bool poll() final;
  void wait() final;
  /// Takes this operation off the progress engine.
  void leave_progress();

  /// Makes progress without blocking; true if anything moved.
  virtual bool advance() = 0;
  /// World ranks that this operation still waits for.
  virtual std::vector<base::Rank> missing() const = 0;

  /// Lines of the library's own diagnosis, read once when the operation fails; may take seconds.
  virtual std::vector<std::string> account() const { return {}; }
  /// Host's part is done: only the device has work left.
  virtual bool enqueued() const { return done_; }
  /// Ends the operation: nothing of it is left on the device, and no wait for it remains.
  virtual void give_up() { finish(); }

  /// Peers wake this rank when the operation can move on; otherwise a wait must poll.
  virtual bool wakes_waiter() const { return false; }

  bool done() const final { return done_; }
  const OperationLabel& label() const { return label_; }
  /// "all_reduce number 17 of process group 'tp'".
  std::string text() const;

 protected:
  void finish() {
    if (!done_ && recorded_) note(telemetry::SpanKind::operation, begun_);
    done_ = true;
  }
  base::Rank member(int position) const {
    return label_.members[static_cast<std::size_t>(position)];
  }

 private:
  void note(telemetry::SpanKind kind, telemetry::SpanClock::time_point begin) const;

  ProgressEngine& progress_;
  OperationLabel label_;
  bool done_ = false;
  /// Spans were recorded when it began.
  bool recorded_ = false;
  telemetry::SpanClock::time_point begun_;
};

/// Runs `operation` to its end when that needs no peer, else returns it as a Work.
Work work_of(std::unique_ptr<PendingOperation> operation);

}  // namespace trireme::comm
