// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include <chrono>

namespace trireme::train {

using Clock = telemetry::SpanClock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds since `begin`, which a record will hold; where spans are recorded, the same time is one,
/// with the serial of the range around it.
inline double span_seconds(Clock::time_point begin, telemetry::SpanKind kind,
                           const telemetry::SpanPlace& place = {}, std::uint64_t serial = 0) {
  const auto end = Clock::now();
  telemetry::note_span({kind, begin, end, place, {}, serial});
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace trireme::train
