// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"
#include "trireme/report/trace.hpp"

#include <algorithm>
#include <map>

namespace trireme::report {
namespace {

using base::format;
using base::Json;
using telemetry::SpanKind;
using telemetry::TimeUse;
using Interval = std::pair<std::int64_t, std::int64_t>;

constexpr double second = 1e9;  ///< nanoseconds

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) / second;
}

Interval window_of(const telemetry::RankTrace& trace) {
  std::optional<Interval> window;
  for (const auto& span : trace.spans) {
    if (span.kind != SpanKind::step) continue;
    if (!window) window = {span.begin, span.end};
    window->second = std::max(window->second, span.end);
  }
  return window.value_or(Interval{0, 0});
}

/// Intervals in which some operation is under way, without overlaps.
std::vector<Interval> under_way(const telemetry::RankTrace& trace) {
  std::vector<Interval> merged;
  for (const auto& span : trace.spans) {
    if (span.kind != SpanKind::operation) continue;
    if (merged.empty() || span.begin > merged.back().second) {
      merged.emplace_back(span.begin, span.end);
    } else {
      merged.back().second = std::max(merged.back().second, span.end);
    }
  }
  return merged;
}

std::int64_t common(const std::vector<Interval>& intervals,
                    const std::vector<telemetry::Segment>& segments) {
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (const auto& segment : segments) {
    if (segment.use != TimeUse::compute) continue;
    while (first < intervals.size() && intervals[first].second <= segment.begin) ++first;
    for (auto at = first; at < intervals.size() && intervals[at].first < segment.end; ++at) {
      sum += std::min(intervals[at].second, segment.end) -
             std::max(intervals[at].first, segment.begin);
    }
  }
  return sum;
}

std::string place_text(const telemetry::RankTrace& rank) {
  std::string text;
  for (const auto& [axis, place] : rank.coordinates) {
    text += format("{}{} {}", text.empty() ? "" : ", ", axis, place);
  }
  return text;
}

}  // namespace

Breakdown breakdown_of(const telemetry::RankTrace& trace) {
  Breakdown breakdown;
  const auto [begin, end] = window_of(trace);
  const auto segments = telemetry::segments_of(trace);
  std::int64_t covered = 0;
  for (const auto& segment : segments) {
    const auto part = std::min(segment.end, end) - std::max(segment.begin, begin);
    if (part <= 0) continue;
    breakdown.uses[static_cast<std::size_t>(segment.use)] += seconds(part);
    covered += part;
  }
  breakdown.wall = seconds(end - begin);
  breakdown.uses[static_cast<std::size_t>(TimeUse::rest)] += seconds(end - begin - covered);
  const auto intervals = under_way(trace);
  for (const auto& [first, last] : intervals) breakdown.communication += seconds(last - first);
  breakdown.hidden = seconds(common(intervals, segments));
  return breakdown;
}

std::vector<OperationTotal> operation_totals(const RunTrace& trace) {
  std::map<std::pair<std::string, std::string>, OperationTotal> totals;
  for (const auto& rank : trace.ranks) {
    for (const auto& span : rank.spans) {
      if (span.operation.empty()) continue;
      auto& total = totals[{span.operation, span.group}];
      total.name = span.operation;
      total.group = span.group;
      if (span.kind == SpanKind::wait) {
        total.waited += seconds(span.end - span.begin);
      } else {
        ++total.count;
        total.bytes += span.bytes;
        total.seconds += seconds(span.end - span.begin);
      }
    }
  }
  std::vector<OperationTotal> sorted;
  for (auto& [key, total] : totals) sorted.push_back(std::move(total));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& one, const auto& other) { return one.waited > other.waited; });
  return sorted;
}

namespace {

/// A table, the first column to the left and the others to the right.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t at = 0; at < row.size(); ++at) {
      widths[at] = std::max(widths[at], base::width_of(row[at]));
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = base::filled(row[0], widths[0]);
    for (std::size_t at = 1; at < row.size(); ++at) {
      line += format("  {}", base::filled_left(row[at], widths[at]));
    }
    text += line + "\n";
  }
  return text;
}

std::string percent(double part, double whole) {
  return whole > 0 ? format("{:.1f} %", 100 * part / whole) : "-";
}

std::string ranks_table(const RunTrace& trace) {
  std::vector<Breakdown> all;
  for (const auto& rank : trace.ranks) all.push_back(breakdown_of(rank));
  std::vector<std::vector<std::string>> rows{{"rank"}};
  std::vector<std::size_t> uses;
  for (std::size_t use = 0; use < telemetry::time_use_count; ++use) {
    // Uses of which no rank has a thousandth are left out.
    const bool matters = std::any_of(all.begin(), all.end(), [use](const auto& each) {
      return each.uses[use] > each.wall / 1000;
    });
    if (matters) uses.push_back(use);
  }
  for (const auto use : uses) {
    rows[0].emplace_back(telemetry::name(static_cast<TimeUse>(use)));
  }
  rows[0].insert(rows[0].end(), {"comm", "hidden"});
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto& rank = trace.ranks[index];
    std::vector<std::string> row{format("{}  {}", rank.rank, place_text(rank))};
    for (const auto use : uses) row.push_back(percent(all[index].uses[use], all[index].wall));
    row.push_back(percent(all[index].communication, all[index].wall));
    row.push_back(percent(all[index].hidden, all[index].communication));
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string operations_table(const RunTrace& trace) {
  constexpr std::size_t most_rows = 12;
  const auto totals = operation_totals(trace);
  if (totals.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"operation", "group", "count", "bytes", "under way", "waited for"}};
  for (std::size_t at = 0; at < std::min(most_rows, totals.size()); ++at) {
    const auto& total = totals[at];
    rows.push_back({total.name, total.group, format("{}", total.count),
                    base::bytes_text(total.bytes), base::duration_text(total.seconds),
                    base::duration_text(total.waited)});
  }
  return format("\n{}", table(rows));
}

}  // namespace

std::string trace_text(const RunTrace& trace) {
  const auto& first = trace.ranks.front();
  const auto steps = trace.steps.last - trace.steps.first + 1;
  const auto wall = breakdown_of(first).wall;
  auto text = format("steps {} of {} ranks: {} a step\n\n", trace.steps.text(), first.world_size,
                     base::duration_text(wall / static_cast<double>(steps)));
  text += ranks_table(trace) + operations_table(trace);
  std::int64_t error = 0;
  std::uint64_t left_out = 0;
  for (const auto& rank : trace.ranks) {
    error = std::max(error, rank.clock_error_ns);
    left_out += rank.left_out;
  }
  if (error > 0) {
    text += format("\nclocks of the nodes agree within {}\n", base::duration_text(seconds(error)));
  }
  if (left_out > 0) text += format("\n{} spans were left out: record fewer steps\n", left_out);
  return text;
}

Json trace_json(const RunTrace& trace) {
  Json json{{"first_step", trace.steps.first}, {"last_step", trace.steps.last}};
  json["ranks"] = Json::array();
  for (const auto& rank : trace.ranks) {
    const auto breakdown = breakdown_of(rank);
    Json uses = Json::object();
    for (std::size_t use = 0; use < telemetry::time_use_count; ++use) {
      uses[std::string(telemetry::name(static_cast<TimeUse>(use)))] = breakdown.uses[use];
    }
    json["ranks"].push_back({{"rank", rank.rank},
                             {"host", rank.host},
                             {"wall_seconds", breakdown.wall},
                             {"seconds", uses},
                             {"communication_seconds", breakdown.communication},
                             {"overlap", breakdown.overlap()},
                             {"clock_error_seconds", seconds(rank.clock_error_ns)},
                             {"left_out", rank.left_out}});
  }
  json["operations"] = Json::array();
  for (const auto& total : operation_totals(trace)) {
    json["operations"].push_back({{"operation", total.name},
                                  {"group", total.group},
                                  {"count", total.count},
                                  {"bytes", total.bytes},
                                  {"seconds", total.seconds},
                                  {"waited_seconds", total.waited}});
  }
  return json;
}

}  // namespace trireme::report
