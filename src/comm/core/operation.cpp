// SPDX-License-Identifier: Apache-2.0
#include "comm/core/operation.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "comm/core/progress_engine.hpp"

#include <exception>

namespace trireme::comm {

PendingOperation::PendingOperation(ProgressEngine& progress, const OperationLabel& label)
    : progress_(progress), label_(label), recorded_(telemetry::records_spans()) {
  if (recorded_) begun_ = telemetry::SpanClock::now();
  progress_.add(*this);
}

PendingOperation::~PendingOperation() {
  progress_.remove(*this);
  if (!done_ && std::uncaught_exceptions() == 0) {
    base::log::local::error("comm",
                            "{} was dropped under way (its peers may hang; this is a defect of "
                            "Trireme, please report it)",
                            text());
  }
}

void PendingOperation::leave_progress() {
  progress_.remove(*this);
}

bool PendingOperation::poll() {
  if (!done_) progress_.advance();
  return done_;
}

void PendingOperation::wait() {
  const bool recorded = !done_ && telemetry::records_spans();
  const auto begin = recorded ? telemetry::SpanClock::now() : telemetry::SpanClock::time_point{};
  progress_.wait(*this);
  if (recorded) note(telemetry::SpanKind::wait, begin);
}

void PendingOperation::note(telemetry::SpanKind kind,
                            telemetry::SpanClock::time_point begin) const {
  const int peer = label_.peer < 0 ? -1 : member(label_.peer).value();
  telemetry::note_span({kind,
                        begin,
                        telemetry::SpanClock::now(),
                        {},
                        {label_.operation, label_.group, label_.members, label_.number,
                         label_.bytes, peer, label_.tag}});
}

std::string PendingOperation::text() const {
  std::string ends;
  if (label_.peer >= 0) {
    ends = base::format(" {} rank {}", label_.operation == "send" ? "to" : "from",
                        member(label_.peer).value());
  }
  return base::format("{}{} number {} of process group '{}'", label_.operation, ends, label_.number,
                      label_.group);
}

Work work_of(std::unique_ptr<PendingOperation> operation) {
  operation->advance();
  if (operation->done()) return {};
  return Work(std::move(operation));
}

}  // namespace trireme::comm
