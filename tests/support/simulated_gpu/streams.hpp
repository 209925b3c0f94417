// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/simulated_gpu/memory.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace trireme::testing::simulated_gpu {

/// When work that was issued is done.
struct Haste {
  enum class Kind {
    lazy,   ///< only when somebody waits for it
    mixed,  ///< some of it at each issue and wait, of streams and in amounts that a seed decides
    eager   ///< at once
  };
  Kind kind = Kind::lazy;
  std::uint64_t seed = 0;
};

class Stream;

/// The end of what was issued to a stream until now.
struct Marker {
  std::shared_ptr<Stream> stream;
  std::uint64_t count = 0;

  bool passed() const;
  /// Lets streams move on until this has passed, or until something takes its time; whether it has.
  bool run() const;
};

/// The streams of one GPU, and which of them moves on when. Work of different streams is done in
/// any order that events between them allow, on the thread that issues or waits. The memory is open
/// meanwhile.
class Scheduler {
 public:
  Scheduler(Haste haste, Memory& memory) : haste_(haste), memory_(memory), random_(haste.seed) {}

  /// Something was issued.
  void stir();
  /// A little of what there is.
  void run_some();
  /// All that does not take its time.
  void run_all();
  /// A number that the seed decides.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

 private:
  friend class Stream;
  friend struct Marker;
  bool run_until(const Marker& marker);
  std::vector<std::shared_ptr<Stream>> pending() const;

  Haste haste_;
  Memory& memory_;
  std::mt19937_64 random_;
  bool stirring_ = false;
  std::vector<Stream*> streams_;
};

/// A queue of work in the order of its issue. What waits too little meets a state from before the
/// work, or, when work is eager, what relies on its being late.
class Stream : public std::enable_shared_from_this<Stream> {
 public:
  /// Says whether it is done; called again until then.
  using Work = std::function<bool()>;

  explicit Stream(std::shared_ptr<Scheduler> scheduler);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { std::erase(scheduler_->streams_, this); }

  void issue(std::function<void()> work);
  /// Work that lasts: until it says that it is done, nothing behind it begins.
  void issue_until(Work work);
  /// Work that is issued from now on begins after the marker, of whichever stream.
  void follow(const Marker& marker);
  Marker mark() { return {shared_from_this(), issued_}; }
  bool idle() const { return waiting_.empty(); }
  /// Moves on to its end, with what it follows and nothing else.
  void run_all() { run(issued_); }

 private:
  friend class Scheduler;
  friend struct Marker;
  /// Until the first `count` pieces of work that were ever issued are done; whether they are.
  bool run(std::uint64_t count);

  std::shared_ptr<Scheduler> scheduler_;
  std::deque<Work> waiting_;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
  bool running_ = false;
};

}  // namespace trireme::testing::simulated_gpu
