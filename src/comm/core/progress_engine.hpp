// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/peer_error.hpp"
#include "trireme/device/device.hpp"

#include "comm/core/hang_report.hpp"
#include "comm/core/operation.hpp"
#include "comm/core/wait_clock.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace trireme::comm {

/// Monitor of a wait's peers, which detects their failures, and the wait's means to sleep.
class PeerMonitor {
 public:
  virtual ~PeerMonitor() = default;
  /// Throws PeerError when a peer is known to have died or failed.
  virtual void check(const PendingOperation& waiting) = 0;
  /// Ranks at which the chain of waits begins, at a wait's deadline, found by queries to other
  /// ranks. Throws as check() does.
  virtual HangReport diagnose_hang(const PendingOperation& waiting) = 0;
  virtual std::string host(base::Rank rank) const = 0;

  /// Publishes what this rank does to peers that wait for it; empty: it computes.
  virtual void show_activity(std::string_view text) = 0;
  /// Arms the wake-up: arm, check once more for work, then sleep until a peer wakes this rank after
  /// the arming.
  virtual std::uint32_t arm() = 0;
  virtual void sleep(std::uint32_t armed, std::chrono::microseconds at_most) = 0;
  virtual void disarm() = 0;
};

/// Times after which a wait stops spinning, and stops yielding the core; lengths of its sleeps.
struct WaitPolicy {
  std::chrono::microseconds spin{20};
  std::chrono::microseconds yield{100};
  /// Sleep while an operation is under way that does not wake this rank.
  std::chrono::microseconds nap{50};
  /// Sleep while every operation wakes this rank: between checks of its peers.
  std::chrono::microseconds sleep{2000};
};

/// Operations that the host has left to a device, in the order of one of its streams.
class EnqueuedOperations {
 public:
  virtual ~EnqueuedOperations() = default;
  /// Oldest operation that is not done, once it has begun to wait for its peers; else null. Without
  /// blocking; throws the error of one that failed.
  virtual PendingOperation* oldest() = 0;
  /// Duration since it was first seen to wait, without times in which this process did not run.
  virtual std::chrono::duration<double> waited() = 0;
  virtual bool empty() const = 0;
  /// Gives up all operations.
  virtual void give_up() = 0;
};

/// Drives every operation of this process. One thread only.
class ProgressEngine final : public device::Watcher {
 public:
  void use(PeerMonitor* watch) { watch_ = watch; }
  void use(const WaitPolicy& patience) { policy_ = patience; }
  PeerMonitor* watch() const { return watch_; }

  void add(PendingOperation& operation) { operations_.push_back(&operation); }
  void remove(PendingOperation& operation) { std::erase(operations_, &operation); }

  void add(EnqueuedOperations& enqueued) { enqueued_.push_back(&enqueued); }
  void remove(EnqueuedOperations& enqueued) { std::erase(enqueued_, &enqueued); }

  /// One step of every operation; true if anything moved.
  bool advance();
  /// Waits until done; PeerError at the deadline or when a peer is lost.
  void wait(PendingOperation& operation) { wait(operation, &PendingOperation::done); }
  /// Waits until only the device has work left.
  void wait_until_enqueued(PendingOperation& operation) {
    wait(operation, &PendingOperation::enqueued);
  }
  /// Step while the host waits for a device: advances operations and checks enqueued ones.
  /// PeerError as in wait(), after every enqueued operation that could hold a device up has been
  /// ended.
  void look() override;
  void rest() override;

 private:
  using Clock = std::chrono::steady_clock;

  using Reached = bool (PendingOperation::*)() const;
  void wait(PendingOperation& operation, Reached reached);
  void wait_unguarded(PendingOperation& operation, Reached reached);
  void show_enqueued();
  void watch_enqueued();
  void give_up_enqueued();
  bool has_enqueued() const;
  /// Sleeps unless something moved.
  bool sleep();
  [[noreturn]] void give_up(const PendingOperation& operation, double waited_seconds) const;
  HangReport diagnose(const PendingOperation& operation) const;

  std::vector<PendingOperation*> operations_;
  std::vector<EnqueuedOperations*> enqueued_;
  /// Enqueued operation that is published to peers; null while the host does not wait for a device.
  const PendingOperation* shown_ = nullptr;
  PeerMonitor* watch_ = nullptr;
  WaitPolicy policy_;
};

}  // namespace trireme::comm
