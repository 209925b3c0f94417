#pragma once

#include <cstdint>
#include <deque>
#include <functional>

namespace trireme::testing {

/// When work that was issued is done.
struct Haste {
  enum class Kind {
    lazy,   ///< only when somebody waits for it
    eager,  ///< at once
    mixed   ///< some of it at each new issue, as a seed decides
  };
  Kind kind = Kind::lazy;
  std::uint64_t seed = 0;
};

/// A queue of work in the order of its issue. What waits too little meets a state from before the
/// work, or, when work is eager, what relies on its being late.
class DetachedStream {
 public:
  explicit DetachedStream(Haste haste) : haste_(haste) {}

  void issue(std::function<void()> work);
  std::uint64_t issued() const { return issued_; }
  std::uint64_t done() const { return done_; }
  /// Does the first `count` pieces of work that were ever issued, unless they are done.
  void run(std::uint64_t count);
  void run_all() { run(issued_); }

 private:
  Haste haste_;
  std::deque<std::function<void()>> waiting_;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
};

}  // namespace trireme::testing
