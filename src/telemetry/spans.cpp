// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/spans.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/telemetry/span_text.hpp"

#include <algorithm>
#include <array>

namespace trireme::telemetry {
namespace {

constexpr std::array<std::string_view, span_kind_count> names{"step",
                                                              "data",
                                                              "forward backward",
                                                              "forward",
                                                              "backward",
                                                              "embedding",
                                                              "layer forward",
                                                              "layer recompute",
                                                              "layer backward input",
                                                              "layer backward weight",
                                                              "head",
                                                              "tensor-parallel",
                                                              "bubble",
                                                              "gradient reduction",
                                                              "norm",
                                                              "update",
                                                              "save",
                                                              "evaluation",
                                                              "wait",
                                                              "operation"};

}  // namespace

std::string_view name(SpanKind kind) {
  return names[static_cast<std::size_t>(kind)];
}

std::string span_text(SpanKind kind, const SpanPlace& place) {
  const auto text = name(kind);
  switch (kind) {
    case SpanKind::step:
      // By this name tools find steps.
      return base::format("ProfilerStep#{}", place.number);
    case SpanKind::forward:
    case SpanKind::backward:
      return base::format("{} of micro-batch {}", text, place.micro_batch);
    case SpanKind::layer_forward:
    case SpanKind::layer_recompute:
    case SpanKind::layer_backward_input:
    case SpanKind::layer_backward_weight:
      return base::format("{} {}", text, place.number);
    case SpanKind::data:
    case SpanKind::forward_backward:
    case SpanKind::embedding:
    case SpanKind::head:
    case SpanKind::tensor:
    case SpanKind::bubble:
    case SpanKind::gradients:
    case SpanKind::norm:
    case SpanKind::update:
    case SpanKind::save:
    case SpanKind::evaluation:
    case SpanKind::wait:
    case SpanKind::operation:
      break;
  }
  return std::string(text);
}

std::optional<SpanKind> span_kind(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<SpanKind>(found - names.begin());
}

SpanRecorder::SpanRecorder() {
  TRIREME_EXPECT(!records_spans(), "a thread has one recorder of spans");
  // Steps of small runs fit without growing.
  spans_.reserve(std::size_t{1} << 13);
  detail::watch.recorder = this;
  detail::watch.is_on = true;
}

void SpanRecorder::stop() {
  auto& watch = detail::watch;
  if (watch.recorder != this) return;
  watch.recorder = nullptr;
  watch.is_on = watch.observer != nullptr;
}

SpanRecorder::~SpanRecorder() {
  stop();
}

namespace {

void observe_with(SpanObserver* observer) {
  auto& watch = detail::watch;
  watch.observer = observer;
  watch.is_on = observer != nullptr || watch.recorder != nullptr;
}

}  // namespace

ObservedSpans::ObservedSpans(SpanObserver* observer) : before_(current()) {
  if (observer != nullptr) observe_with(observer);
}

ObservedSpans::~ObservedSpans() {
  observe_with(before_);
}

void SpanScope::begin() {
  observer_ = detail::watch.observer;
  if (observer_ != nullptr) {
    serial_ = ++detail::watch.serial;
    observer_->begin(kind_, place_, serial_);
  }
  begin_ = SpanClock::now();
}

void SpanScope::end() {
  note_span({kind_, begin_, SpanClock::now(), place_, {}, serial_});
  if (observer_ != nullptr) observer_->end();
}

}  // namespace trireme::telemetry
