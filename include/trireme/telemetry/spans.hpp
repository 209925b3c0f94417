// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Times of what a rank does in a few chosen steps (train.profile). While nothing is recorded, a
/// span costs one branch.
namespace trireme::telemetry {

/// Clock of spans and of the fields of metrics.jsonl.
using SpanClock = std::chrono::steady_clock;

/// Kinds of work of a rank's thread; `operation` alone is not the thread's: a collective or
/// message, from its start until it is done.
enum class SpanKind : std::uint8_t {
  step,              ///< number: the step
  data,              ///< samples into micro-batches
  forward_backward,  ///< the schedule: all micro-batches of the step
  forward,           ///< of a micro-batch through a chunk
  backward,          ///< likewise
  embedding,         ///< forward or backward
  layer_forward,     ///< number: the layer
  layer_recompute,   ///< forward again in backward (train.activation_checkpointing)
  layer_backward_input,
  layer_backward_weight,
  head,       ///< loss, with the gradient of the head's input and weight
  tensor,     ///< collective of activations, as tensor_comm_ms counts it
  bubble,     ///< wait for a message of another stage, as bubble_ms counts it
  gradients,  ///< exposed reduction of gradients, as exposed_comm_ms counts it
  norm,       ///< of all gradients
  update,     ///< the optimizer
  save,       ///< training stands still for a checkpoint
  evaluation,
  wait,      ///< for an operation
  operation  ///< collective or message under way
};
inline constexpr std::size_t span_kind_count = static_cast<std::size_t>(SpanKind::operation) + 1;
/// "layer forward", "gradient reduction".
std::string_view name(SpanKind kind);
std::optional<SpanKind> span_kind(std::string_view name);

/// Where in a step a span belongs; -1: nowhere.
struct SpanPlace {
  int micro_batch = -1;
  int chunk = -1;
  std::int64_t number = -1;  ///< of the step or layer
};

/// A collective or message.
struct SpanOperation {
  std::string_view name;              ///< "all_reduce"; static
  std::string_view group;             ///< "tp"; lives as long as the group
  std::span<const base::Rank> ranks;  ///< the group's members
  std::uint64_t number = 0;           ///< as in errors: of the group's collectives, or messages
  std::size_t bytes = 0;              ///< of the whole array
  int peer = -1;                      ///< world rank of a message's other end
  int tag = -1;                       ///< of a message
};

struct Span {
  SpanKind kind = SpanKind::step;
  SpanClock::time_point begin;
  SpanClock::time_point end;
  SpanPlace place;
  /// Operation of kinds `operation` and `wait`.
  SpanOperation operation;
  /// As its observer has been told; 0: it was told of none.
  std::uint64_t serial = 0;
};

/// Is told when spans of its thread begin and end: shows them to other tools, and to a GPU's
/// driver, which remembers from within which span a kernel was launched.
class SpanObserver {
 public:
  virtual ~SpanObserver() = default;
  /// `serial` counts the spans of the thread, from 1.
  virtual void begin(SpanKind kind, const SpanPlace& place, std::uint64_t serial) = 0;
  /// End of the span that was begun last and has not ended.
  virtual void end() = 0;
};

/// Records the spans of the thread that made it, until it is stopped or ends; one at a time on a
/// thread.
class SpanRecorder {
 public:
  /// Largest number of spans; those behind are counted and left out.
  static constexpr std::size_t most_spans = std::size_t{1} << 20;

  SpanRecorder();
  SpanRecorder(const SpanRecorder&) = delete;
  SpanRecorder& operator=(const SpanRecorder&) = delete;
  ~SpanRecorder();

  void add(const Span& span) {
    if (spans_.size() < most_spans) {
      spans_.push_back(span);
    } else {
      ++left_out_;
    }
  }
  /// Ends the recording; what was recorded stays.
  void stop();
  /// In the order of their ends. On a thread they nest.
  const std::vector<Span>& spans() const { return spans_; }
  std::size_t left_out() const { return left_out_; }

 private:
  std::vector<Span> spans_;
  std::size_t left_out_ = 0;
};

namespace detail {
/// The recorder that this thread's spans go to.
struct Watch {
  /// Whether there is one of the two.
  bool is_on = false;
  SpanRecorder* recorder = nullptr;
  SpanObserver* observer = nullptr;
  std::uint64_t serial = 0;
};
inline thread_local constinit Watch watch;
}  // namespace detail

/// True while this thread's spans are recorded.
inline bool records_spans() {
  return detail::watch.recorder != nullptr;
}

/// Records a span whose times were taken elsewhere.
inline void note_span(const Span& span) {
  if (detail::watch.recorder != nullptr) detail::watch.recorder->add(span);
}

/// Has this thread's spans observed while it lives; a null pointer leaves things as they are. The
/// observer before is told as well if the new one tells it.
class ObservedSpans {
 public:
  explicit ObservedSpans(SpanObserver* observer);
  ObservedSpans(const ObservedSpans&) = delete;
  ObservedSpans& operator=(const ObservedSpans&) = delete;
  ~ObservedSpans();

  /// The observer of this thread; null if there is none.
  static SpanObserver* current() { return detail::watch.observer; }

 private:
  SpanObserver* before_;
};

/// Tells the observer of the life of this object, as of a span; nothing is recorded.
class SpanRange {
 public:
  explicit SpanRange(SpanKind kind, const SpanPlace& place = {})
      : observer_(detail::watch.observer) {
    if (observer_ != nullptr) begin(kind, place);
  }
  SpanRange(const SpanRange&) = delete;
  SpanRange& operator=(const SpanRange&) = delete;
  ~SpanRange() {
    if (observer_ != nullptr) observer_->end();
  }
  /// 0: there is no observer.
  std::uint64_t serial() const { return serial_; }

 private:
  void begin(SpanKind kind, const SpanPlace& place) {
    serial_ = ++detail::watch.serial;
    observer_->begin(kind, place, serial_);
  }

  SpanObserver* observer_;
  std::uint64_t serial_ = 0;
};

/// Records the life of this object.
class SpanScope {
 public:
  explicit SpanScope(SpanKind kind, const SpanPlace& place = {})
      : is_on_(detail::watch.is_on), kind_(kind), place_(place) {
    if (is_on_) begin();
  }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;
  ~SpanScope() {
    if (is_on_) end();
  }

 private:
  void begin();
  void end();

  bool is_on_;
  SpanKind kind_;
  SpanPlace place_;
  SpanClock::time_point begin_;
  SpanObserver* observer_ = nullptr;
  std::uint64_t serial_ = 0;
};

}  // namespace trireme::telemetry
