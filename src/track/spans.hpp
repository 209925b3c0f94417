// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include "rows.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

/// Spans in OpenTelemetry's sense, with the names that Megatron-LM's have. Ids follow from the run,
/// the step and the span's place alone: what is sent again is the same span. A step is a trace, a
/// load another.
namespace trireme::track {

struct Span {
  std::string name;           ///< "train_step"
  std::string trace_id;       ///< 32 hexadecimal digits
  std::string span_id;        ///< 16 hexadecimal digits
  std::string parent_id;      ///< empty: none
  std::int64_t begin_ns = 0;  ///< since 1970
  std::int64_t end_ns = 0;
  /// Whole numbers, floating-point numbers and texts.
  std::vector<std::pair<std::string, base::Json>> attributes;
};

/// Attributes of the sender of a span: the run, or a rank of it.
using Attributes = std::vector<std::pair<std::string, base::Json>>;

/// Spans of a row: the step with its parts, and evaluation, saves and loads.
std::vector<Span> spans_of(const RunFacts& run, const Row& row);
/// Resource of the process that has written these lines, by the start that it belongs to.
Attributes resource_of(const RunFacts& run, std::int64_t restart);

/// Spans of a rank's trace, block by block: a rank records a million at most.
class RankSpans {
 public:
  RankSpans(const RunFacts& run, const telemetry::RankTrace& trace);
  RankSpans(RunFacts&&, const telemetry::RankTrace&) = delete;
  RankSpans(const RunFacts&, telemetry::RankTrace&&) = delete;

  /// So many more at most; none at the end.
  std::vector<Span> next(std::size_t count);
  Attributes resource() const;

 private:
  Span span_at(std::size_t index) const;
  std::string id_of(std::size_t index) const;

  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  const RunFacts& run_;
  const telemetry::RankTrace& trace_;
  /// [span]: the innermost span of the thread around its begin; none where there is none.
  std::vector<std::size_t> parents_;
  /// [span]: the step that it belongs to.
  std::vector<std::int64_t> steps_;
  std::size_t next_ = 0;
};

}  // namespace trireme::track
