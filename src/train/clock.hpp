// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include <chrono>

namespace trireme::train {

using Clock = telemetry::SpanClock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds since `begin`, which a record will hold; where spans are recorded, the same time is one.
inline double span_seconds(Clock::time_point begin, telemetry::SpanKind kind,
                           const telemetry::SpanPlace& place = {}) {
  const auto end = Clock::now();
  telemetry::note_span({kind, begin, end, place, {}});
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace trireme::train
