// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"
#include "trireme/predict/time.hpp"
#include "trireme/predict/timeline.hpp"

#include "predict/data_stream.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

/// Private to the room.
namespace trireme::predict {

/// Ends of a step's last parts on a rank: all ranks' sums of gradients, the norm, the update and
/// the gather of updated parameters.
struct LastTimes {
  Time summed{};
  Time normed{};
  Time updated{};
  Time gathered{};
};

/// Keeps what a replay does, in rows of simulated ranks; without rows nothing.
class Recorder {
 public:
  explicit Recorder(std::vector<TimelineRow>* rows = nullptr) : rows_(rows) {}

  /// A piece of an action; pieces without a wait between are one span.
  void ran(std::size_t rank, const layout::Action& action, Time begin, Time end,
           Time tensor) const {
    if (rows_ == nullptr || end == begin) return;
    auto& spans = (*rows_)[rank].spans;
    const TimelineSpan span{kind_of(action.kind), seconds_of(begin),    seconds_of(end),
                            action.micro_batch,   action.virtual_stage, seconds_of(tensor)};
    const auto last = std::find_if(spans.rbegin(), spans.rend(), [](const TimelineSpan& each) {
      return each.kind < TimelineSpan::Kind::data;
    });
    if (last == spans.rend() || last->end != span.begin || last->kind != span.kind ||
        last->micro_batch != span.micro_batch || last->virtual_stage != span.virtual_stage) {
      spans.push_back(span);
      return;
    }
    last->end = span.end;
    last->tensor += span.tensor;
  }

  void sent(std::size_t rank, const layout::Action& action, Time begin, Time end) const {
    add(rank, TimelineSpan::Kind::message, begin, end, action.micro_batch, action.virtual_stage);
  }

  /// A sum of gradients for which cores compute.
  void summed(std::size_t rank, Time begin, Time end) const {
    add(rank, TimelineSpan::Kind::data, begin, end);
  }

  void ended(std::size_t rank, const DataStream& stream, const LastTimes& times,
             Time update) const {
    if (rows_ == nullptr) return;
    stream.each([&](Time begin, Time end) { add(rank, TimelineSpan::Kind::data, begin, end); });
    add(rank, TimelineSpan::Kind::data, times.summed, times.normed);
    add(rank, TimelineSpan::Kind::update, times.updated - update, times.updated);
    add(rank, TimelineSpan::Kind::data, times.updated, times.gathered);
    auto& spans = (*rows_)[rank].spans;
    std::stable_sort(spans.begin(), spans.end(),
                     [](const auto& one, const auto& other) { return one.end < other.end; });
  }

 private:
  static TimelineSpan::Kind kind_of(layout::ActionKind kind) {
    switch (kind) {
      case layout::ActionKind::forward:
        return TimelineSpan::Kind::forward;
      case layout::ActionKind::backward_weight:
        return TimelineSpan::Kind::weight;
      case layout::ActionKind::backward:
      case layout::ActionKind::backward_input:
        break;
    }
    return TimelineSpan::Kind::backward;
  }

  void add(std::size_t rank, TimelineSpan::Kind kind, Time begin, Time end, int micro_batch = -1,
           int virtual_stage = 0) const {
    if (rows_ == nullptr || end == begin) return;
    (*rows_)[rank].spans.push_back(
        {kind, seconds_of(begin), seconds_of(end), micro_batch, virtual_stage, 0});
  }

  std::vector<TimelineRow>* rows_;
};

}  // namespace trireme::predict
