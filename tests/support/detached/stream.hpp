// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace trireme::testing {

/// When work that was issued is done.
struct Haste {
  enum class Kind {
    lazy,   ///< only when somebody waits for it
    eager,  ///< at once
    mixed   ///< some of it at each new issue, of streams and in amounts that a seed decides
  };
  Kind kind = Kind::lazy;
  std::uint64_t seed = 0;
};

class DetachedStream;

/// The streams of one device, and which of them moves on when. Work of different streams is done in
/// any order that events between them allow.
class DetachedOrder {
 public:
  explicit DetachedOrder(Haste haste) : haste_(haste) {}

  void add(DetachedStream& stream) { streams_.push_back(&stream); }
  void remove(DetachedStream& stream) { std::erase(streams_, &stream); }
  /// Something was issued.
  void stir();

 private:
  void run_what_can();
  void run_some();

  Haste haste_;
  std::uint64_t stirred_ = 0;
  bool stirring_ = false;
  std::vector<DetachedStream*> streams_;
};

/// A queue of work in the order of its issue. What waits too little meets a state from before the
/// work, or, when work is eager, what relies on its being late.
class DetachedStream {
 public:
  /// Says whether it is done; called again until then.
  using Work = std::function<bool()>;

  explicit DetachedStream(std::shared_ptr<DetachedOrder> order) : order_(std::move(order)) {
    order_->add(*this);
  }
  DetachedStream(const DetachedStream&) = delete;
  DetachedStream& operator=(const DetachedStream&) = delete;
  ~DetachedStream() { order_->remove(*this); }

  void issue(std::function<void()> work);
  /// What lasts: until it says that it is done, nothing behind it begins.
  void issue_until(Work work);
  /// From now on what is issued is kept instead, until it is taken.
  void keep() { kept_.emplace(); }
  bool keeps() const { return kept_.has_value(); }
  std::vector<Work> take_kept();
  std::uint64_t issued() const { return issued_; }
  std::uint64_t done() const { return done_; }
  /// Moves on until the first `count` pieces of work that were ever issued are done, or until
  /// something takes its time; whether they are.
  bool run(std::uint64_t count);
  bool run_all() { return run(issued_); }

 private:
  std::shared_ptr<DetachedOrder> order_;
  std::deque<Work> waiting_;
  std::optional<std::vector<Work>> kept_;
  std::uint64_t issued_ = 0;
  std::uint64_t done_ = 0;
  bool running_ = false;
};

/// The end of what was issued to a stream until now.
struct DetachedPlace {
  std::shared_ptr<DetachedStream> stream;
  std::uint64_t count = 0;

  explicit DetachedPlace(std::shared_ptr<DetachedStream> of)
      : stream(std::move(of)), count(stream->issued()) {}
  bool passed() const { return stream->done() >= count; }
  bool run() const { return stream->run(count); }
};

}  // namespace trireme::testing
