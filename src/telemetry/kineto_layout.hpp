// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace trireme::telemetry {

/// Line that ends what a rank's file says of itself: events follow, one a line.
inline constexpr std::string_view kineto_events_key = "\"traceEvents\": [\n";

}  // namespace trireme::telemetry
