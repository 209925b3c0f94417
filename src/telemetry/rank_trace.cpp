// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/rank_trace.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace trireme::telemetry {
namespace {

constexpr std::array<std::string_view, time_use_count> use_names{
    "compute", "tensor-parallel", "gradient reduction", "bubble", "other waits",
    "data",    "saves",           "evaluation",         "rest"};

TimeUse own_use(SpanKind kind) {
  switch (kind) {
    case SpanKind::forward:
    case SpanKind::backward:
    case SpanKind::embedding:
    case SpanKind::layer_forward:
    case SpanKind::layer_recompute:
    case SpanKind::layer_backward_input:
    case SpanKind::layer_backward_weight:
    case SpanKind::head:
    case SpanKind::norm:
    case SpanKind::update:
      return TimeUse::compute;
    case SpanKind::tensor:
      return TimeUse::tensor;
    case SpanKind::bubble:
      return TimeUse::bubble;
    case SpanKind::gradients:
      return TimeUse::gradients;
    case SpanKind::wait:
      return TimeUse::wait;
    case SpanKind::data:
      return TimeUse::data;
    case SpanKind::save:
      return TimeUse::save;
    case SpanKind::evaluation:
      return TimeUse::evaluation;
    case SpanKind::step:
    case SpanKind::forward_backward:
    case SpanKind::operation:
      break;
  }
  return TimeUse::rest;
}

TimeUse use_within(TimeUse outer, SpanKind kind) {
  if (outer == TimeUse::save || outer == TimeUse::evaluation) return outer;
  const bool is_named =
      outer == TimeUse::tensor || outer == TimeUse::gradients || outer == TimeUse::bubble;
  return kind == SpanKind::wait && is_named ? outer : own_use(kind);
}

/// Cuts a thread's time where spans begin and end.
class Cutter {
 public:
  explicit Cutter(const RankTrace& trace) : trace_(trace) {}

  void enter(std::size_t index) {
    const auto& span = trace_.spans[index];
    leave_until(span.begin);
    cut(span.begin);
    const auto outer = open_.empty() ? TimeUse::rest : open_.back().use;
    open_.push_back({index, use_within(outer, span.kind)});
    at_ = span.begin;
  }
  std::vector<Segment> finish() {
    leave_until(std::numeric_limits<std::int64_t>::max());
    return std::move(segments_);
  }

 private:
  struct Open {
    std::size_t span;
    TimeUse use;
  };

  void leave_until(std::int64_t moment) {
    while (!open_.empty() && trace_.spans[open_.back().span].end <= moment) {
      cut(trace_.spans[open_.back().span].end);
      open_.pop_back();
    }
  }
  void cut(std::int64_t moment) {
    if (open_.empty() || moment <= at_) return;
    segments_.push_back({open_.back().use, at_, moment, open_.back().span});
    at_ = moment;
  }

  const RankTrace& trace_;
  std::vector<Open> open_;
  std::vector<Segment> segments_;
  std::int64_t at_ = 0;
};

}  // namespace

std::string_view name(TimeUse use) {
  return use_names[static_cast<std::size_t>(use)];
}

void take_spans(const SpanRecorder& recorder,
                const std::function<std::int64_t(SpanClock::time_point)>& since_origin,
                RankTrace& trace) {
  trace.left_out = recorder.left_out();
  trace.spans.reserve(recorder.spans().size());
  for (const auto& span : recorder.spans()) {
    const auto& operation = span.operation;
    trace.spans.push_back({span.kind, since_origin(span.begin), since_origin(span.end), span.place,
                           std::string(operation.name), std::string(operation.group),
                           operation.number, operation.bytes, operation.peer, operation.tag,
                           span.serial});
    if (operation.group.empty()) continue;
    auto& ranks = trace.groups[std::string(operation.group)];
    if (!ranks.empty()) continue;
    for (const auto rank : operation.ranks) ranks.push_back(rank.value());
  }
  // Stable, from the last end to the first: of spans with the same times the outer one ends later.
  std::reverse(trace.spans.begin(), trace.spans.end());
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const auto& one, const auto& other) {
    return one.begin != other.begin ? one.begin < other.begin : one.end > other.end;
  });
}

std::vector<Segment> segments_of(const RankTrace& trace) {
  Cutter cutter(trace);
  for (std::size_t index = 0; index < trace.spans.size(); ++index) {
    if (trace.spans[index].kind != SpanKind::operation) cutter.enter(index);
  }
  return cutter.finish();
}

std::string trace_file_name(int rank) {
  return base::format("rank-{:04}.json", rank);
}

}  // namespace trireme::telemetry
