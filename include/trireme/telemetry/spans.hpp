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

/// What a rank's thread does; `operation` alone is not the thread's: a collective or message, from
/// its start until it is done.
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
  /// Of `operation` and `wait`.
  SpanOperation operation;
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
/// Recorder of this thread; null while it records nothing.
inline thread_local constinit SpanRecorder* recorder = nullptr;
}  // namespace detail

/// True while this thread's spans are recorded.
inline bool records_spans() {
  return detail::recorder != nullptr;
}

/// Records a span whose times were taken elsewhere.
inline void note_span(const Span& span) {
  if (detail::recorder != nullptr) detail::recorder->add(span);
}

/// Records the life of this object.
class SpanScope {
 public:
  explicit SpanScope(SpanKind kind, const SpanPlace& place = {})
      : records_(records_spans()), kind_(kind), place_(place) {
    if (records_) begin_ = SpanClock::now();
  }
  SpanScope(const SpanScope&) = delete;
  SpanScope& operator=(const SpanScope&) = delete;
  ~SpanScope() {
    if (records_) note_span({kind_, begin_, SpanClock::now(), place_, {}});
  }

 private:
  bool records_;
  SpanKind kind_;
  SpanPlace place_;
  SpanClock::time_point begin_;
};

}  // namespace trireme::telemetry
