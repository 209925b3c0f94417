#pragma once

#include "trireme/comm/peer_error.hpp"
#include "trireme/device/device.hpp"

#include "blame.hpp"
#include "operation.hpp"
#include "wait_clock.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace trireme::comm {

/// What a wait can learn about peers besides that they have not come, and how it sleeps.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// Throws PeerError when a peer is known to have died or failed.
  virtual void check(const PendingOperation& waiting) = 0;
  /// Who is to blame for a wait that reached its deadline, after a moment of asking around: not
  /// those that wait themselves, but where the chain begins. Throws as check() does.
  virtual Blame find_blame(const PendingOperation& waiting) = 0;
  virtual std::string host(base::Rank rank) const = 0;

  /// Shown to peers that miss this rank; empty: it computes.
  virtual void show_activity(std::string_view text) = 0;
  /// Arm, look once more for work, then sleep until a peer rings after the arming.
  virtual std::uint32_t arm() = 0;
  virtual void sleep(std::uint32_t armed, std::chrono::microseconds at_most) = 0;
  virtual void disarm() = 0;
};

/// How a wait passes its time: it spins, then gives the core away, then sleeps.
struct Patience {
  std::chrono::microseconds spin{20};
  std::chrono::microseconds yield{100};
  /// While an operation is under way that wakes nobody.
  std::chrono::microseconds nap{50};
  /// While every operation wakes this rank: how often it looks after its peers.
  std::chrono::microseconds sleep{2000};
};

/// Operations that the host has left to a device, in the order of one of its streams.
class JoinedOperations {
 public:
  virtual ~JoinedOperations() = default;
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
class Progress final : public device::Watcher {
 public:
  void use(PeerWatch* watch) { watch_ = watch; }
  void use(const Patience& patience) { patience_ = patience; }
  PeerWatch* watch() const { return watch_; }

  void add(PendingOperation& operation) { operations_.push_back(&operation); }
  void remove(PendingOperation& operation) { std::erase(operations_, &operation); }

  void add(JoinedOperations& joined) { joined_.push_back(&joined); }
  void remove(JoinedOperations& joined) { std::erase(joined_, &joined); }

  /// One step of everything; whether anything moved.
  bool advance();
  /// Until done; PeerError at the deadline or when a peer is lost.
  void wait(PendingOperation& operation) { wait(operation, &PendingOperation::done); }
  /// The same until all that is left is the device's.
  void wait_until_issued(PendingOperation& operation) {
    wait(operation, &PendingOperation::issued);
  }
  /// While the host waits for a device: one step, and what joined operations owe. PeerError like
  /// wait(), and nothing is left that could hold a device up.
  void look() override;
  void rest() override;

 private:
  using Clock = std::chrono::steady_clock;

  using Reached = bool (PendingOperation::*)() const;
  void wait(PendingOperation& operation, Reached reached);
  void wait_unguarded(PendingOperation& operation, Reached reached);
  void show_joined();
  void watch_joined();
  void give_up_joined();
  bool has_joined() const;
  /// Sleeps unless something moved.
  bool sleep();
  [[noreturn]] void give_up(const PendingOperation& operation, double waited_seconds) const;
  Blame blame(const PendingOperation& operation) const;

  std::vector<PendingOperation*> operations_;
  std::vector<JoinedOperations*> joined_;
  /// The joined operation that peers are told of; null while the host does not wait for a device.
  const PendingOperation* shown_ = nullptr;
  PeerWatch* watch_ = nullptr;
  Patience patience_;
};

}  // namespace trireme::comm
