// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/telemetry/spans.hpp"

#include <string>

namespace trireme::telemetry {

/// A span as people see it in pictures: "ProfilerStep#12", "layer forward 3".
std::string span_text(SpanKind kind, const SpanPlace& place);

}  // namespace trireme::telemetry
