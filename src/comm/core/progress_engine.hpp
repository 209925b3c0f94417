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

/// What a wait learns about its peers besides that they have not come, and how it sleeps.
class PeerMonitor {
 public:
  virtual ~PeerMonitor() = default;
  /// Throws PeerError when a peer is known to have died or failed.
  virtual void check(const PendingOperation& waiting) = 0;
  /// Ranks that hold up a wait at its deadline, after asking other ranks: not those that wait
  /// themselves, but where the chain of waits begins. Throws as check() does.
  virtual HangReport diagnose_hang(const PendingOperation& waiting) = 0;
  virtual std::string host(base::Rank rank) const = 0;

  /// Publishes what this rank does to peers that wait for it; empty: it computes.
  virtual void show_activity(std::string_view text) = 0;
  /// Arm, look once more for work, then sleep until a peer wakes this rank after the arming.
  virtual std::uint32_t arm() = 0;
  virtual void sleep(std::uint32_t armed, std::chrono::microseconds at_most) = 0;
  virtual void disarm() = 0;
};

/// Times after which a wait stops spinning, stops yielding the core, and between its sleeps.
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
  /// The first that is not done, once it has begun to wait for its peers; else null. Without
  /// blocking; throws what ends it.
  virtual PendingOperation* oldest() = 0;
  /// Since it was first seen to wait, without times in which this process did not run.
  virtual std::chrono::duration<double> waited() = 0;
  virtual bool empty() const = 0;
  /// Gives all of them up.
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

  /// One step of everything; whether anything moved.
  bool advance();
  /// Until done; PeerError at the deadline or when a peer is lost.
  void wait(PendingOperation& operation) { wait(operation, &PendingOperation::done); }
  /// The same until all that is left is the device's.
  void wait_until_enqueued(PendingOperation& operation) {
    wait(operation, &PendingOperation::enqueued);
  }
  /// While the host waits for a device: one step, and what enqueued operations owe. PeerError like
  /// wait(), and nothing is left that could hold a device up.
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
  /// The enqueued operation that peers are told of; null while the host does not wait for a device.
  const PendingOperation* shown_ = nullptr;
  PeerMonitor* watch_ = nullptr;
  WaitPolicy policy_;
};

}  // namespace trireme::comm
