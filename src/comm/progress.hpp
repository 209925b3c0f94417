#pragma once

#include "trireme/comm/peer_error.hpp"

#include "operation.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace trireme::comm {

/// What a wait can learn about peers besides that they have not come.
class PeerWatch {
 public:
  virtual ~PeerWatch() = default;
  /// Throws PeerError when a peer is known to have died or failed.
  virtual void check(const PendingOperation& waiting) = 0;
  /// "rank 3 (process 4711 on n2, stopped by a signal)".
  virtual std::string describe(base::Rank rank) const = 0;
  virtual std::string host(base::Rank rank) const = 0;
  /// Returns when a peer rings, or after at most this long.
  virtual void sleep(std::chrono::microseconds at_most) = 0;
};

/// How a wait passes its time: spin, then give the core away, then sleep.
struct Patience {
  std::chrono::microseconds spin{20};
  std::chrono::microseconds yield{100};
  std::chrono::microseconds sleep{50};
};

/// Drives every operation of this process. One thread only.
class Progress {
 public:
  void use(PeerWatch* watch, const Patience& patience) {
    watch_ = watch;
    patience_ = patience;
  }
  PeerWatch* watch() const { return watch_; }

  void add(PendingOperation& operation) { operations_.push_back(&operation); }
  void remove(PendingOperation& operation) { std::erase(operations_, &operation); }

  /// One step of everything; whether anything moved.
  bool advance();
  /// Until done; PeerError at the deadline or when a peer is lost.
  void wait(PendingOperation& operation);

 private:
  using Clock = std::chrono::steady_clock;

  void pause(const PendingOperation& operation, Clock::duration idle);
  [[noreturn]] void give_up(const PendingOperation& operation, double waited_seconds) const;

  std::vector<PendingOperation*> operations_;
  PeerWatch* watch_ = nullptr;
  Patience patience_;
};

}  // namespace trireme::comm
