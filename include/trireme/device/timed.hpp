// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/device.hpp"
#include "trireme/telemetry/spans.hpp"

#include <memory>

namespace trireme::device {

/// Times a part of a function, as a span of this kind where spans are recorded; without a stopwatch
/// nothing else.
class Timed {
 public:
  Timed(Stopwatch* watch, telemetry::SpanKind kind) : watch_(watch), kind_(kind) { start(); }
  void start() {
    const bool is_seen =
        telemetry::records_spans() || telemetry::ObservedSpans::current() != nullptr;
    if (is_seen) span_ = std::make_unique<telemetry::SpanScope>(kind_);
    if (watch_ != nullptr) watch_->start();
  }
  /// Ends the measurement; not called after a failure, which is not timed.
  void end() {
    if (watch_ != nullptr) watch_->stop();
    span_.reset();
  }

 private:
  Stopwatch* watch_;
  telemetry::SpanKind kind_;
  /// Null while nobody sees spans.
  std::unique_ptr<telemetry::SpanScope> span_;
};

}  // namespace trireme::device
