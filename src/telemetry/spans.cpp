// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/spans.hpp"

#include "trireme/base/contract.hpp"

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

std::optional<SpanKind> span_kind(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<SpanKind>(found - names.begin());
}

SpanRecorder::SpanRecorder() {
  TRIREME_EXPECT(!records_spans(), "a thread has one recorder of spans");
  // Steps of small runs fit without growing.
  spans_.reserve(std::size_t{1} << 13);
  detail::recorder = this;
}

void SpanRecorder::stop() {
  if (detail::recorder == this) detail::recorder = nullptr;
}

SpanRecorder::~SpanRecorder() {
  stop();
}

}  // namespace trireme::telemetry
