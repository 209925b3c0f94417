// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/svg.hpp"

#include "trireme/base/chart.hpp"
#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/report/trace.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::report {
namespace {

using base::format;
using telemetry::SpanKind;
using telemetry::TimeUse;

constexpr std::size_t most_rows = 64;
constexpr int axis_columns = 1200;  ///< of the time axis, a pixel each
constexpr double left = 150;
constexpr double top = 70;
constexpr double row_height = 34;
constexpr double bar_height = 20;
constexpr double thin_height = 6;
constexpr double legend_height = 64;

/// Shade of a column of the picture.
enum class Shade {
  forward,
  backward,
  update,
  tensor,
  gradients,
  bubble,
  wait,
  data,
  between,  ///< saves and evaluations
  rest
};
constexpr std::size_t shade_count = static_cast<std::size_t>(Shade::rest) + 1;

struct ShadeText {
  std::string_view fill;
  const char* words;
};
/// Fills that differ in lightness, too.
constexpr std::array<ShadeText, shade_count> shades{
    {{base::step_fill::forward, "forward"},
     {base::step_fill::backward, "backward"},
     {base::step_fill::update, "update and norm"},
     {base::step_fill::tensor, "tensor-parallel"},
     {base::step_fill::gradients, "gradient reduction"},
     {base::step_fill::bubble, "bubble"},
     {base::step_fill::wait, "other waits"},
     {"#9e9ac8", "data"},
     {"#54278f", "saves, evaluation"},
     {"#ffffff", "rest"}}};

Shade compute_shade(SpanKind kind) {
  switch (kind) {
    case SpanKind::backward:
    case SpanKind::layer_recompute:
    case SpanKind::layer_backward_input:
    case SpanKind::layer_backward_weight:
      return Shade::backward;
    case SpanKind::update:
    case SpanKind::norm:
      return Shade::update;
    case SpanKind::forward:
    case SpanKind::embedding:
    case SpanKind::layer_forward:
    case SpanKind::head:
    case SpanKind::step:
    case SpanKind::data:
    case SpanKind::forward_backward:
    case SpanKind::tensor:
    case SpanKind::bubble:
    case SpanKind::gradients:
    case SpanKind::save:
    case SpanKind::evaluation:
    case SpanKind::wait:
    case SpanKind::operation:
      break;
  }
  return Shade::forward;
}

Shade shade_of(const telemetry::RankTrace& trace, const telemetry::Segment& segment) {
  switch (segment.use) {
    case TimeUse::compute:
      return compute_shade(trace.spans[segment.span].kind);
    case TimeUse::tensor:
      return Shade::tensor;
    case TimeUse::gradients:
      return Shade::gradients;
    case TimeUse::bubble:
      return Shade::bubble;
    case TimeUse::wait:
      return Shade::wait;
    case TimeUse::data:
      return Shade::data;
    case TimeUse::save:
    case TimeUse::evaluation:
      return Shade::between;
    case TimeUse::rest:
      break;
  }
  return Shade::rest;
}

struct Axis {
  std::int64_t begin = 0;
  std::int64_t end = 1;

  double column(std::int64_t time) const {
    return static_cast<double>(time - begin) * axis_columns / static_cast<double>(end - begin);
  }
};

Axis axis_of(const RunTrace& trace) {
  Axis axis{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const auto& rank : trace.ranks) {
    for (const auto& span : rank.spans) {
      if (span.kind != SpanKind::step) continue;
      axis.begin = std::min(axis.begin, span.begin);
      axis.end = std::max(axis.end, span.end);
    }
  }
  return axis.begin < axis.end ? axis : Axis{};
}

/// Adds the part of [begin, end) that each column has to `at(column)`.
template <typename Add>
void spread(const Axis& axis, std::int64_t begin, std::int64_t end, const Add& add) {
  const double from = std::max(0.0, axis.column(begin));
  const double to = std::min<double>(axis_columns, axis.column(end));
  for (auto column = std::floor(from); column < to; ++column) {
    add(static_cast<std::size_t>(column), std::min(to, column + 1) - std::max(from, column));
  }
}

/// Shares of a row's columns that one shade takes, from the top of its stack and from the end.
using Heights = std::vector<std::pair<double, double>>;

/// Rectangles of one shade as one path: neighbours of one height are one rectangle. Heights are
/// rounded to half a pixel where they begin and end, so that a column's parts still fill it.
std::string path_of(const Heights& heights, double y, double height, std::string_view fill) {
  std::string moves;
  const auto rounded = [&](double share) { return std::round(share * height * 2) / 2; };
  for (std::size_t begin = 0; begin < heights.size();) {
    const double from = rounded(heights[begin].first);
    const double to = rounded(heights[begin].second);
    std::size_t end = begin + 1;
    while (end < heights.size() && rounded(heights[end].first) == from &&
           rounded(heights[end].second) == to) {
      ++end;
    }
    if (to > from) {
      moves += format("M{:g} {:g}h{}v{:g}h-{}z", left + static_cast<double>(begin), y + from,
                      end - begin, to - from, end - begin);
    }
    begin = end;
  }
  return moves.empty() ? moves : format("<path fill=\"{}\" d=\"{}\"/>\n", fill, moves);
}

using Used = std::array<bool, shade_count>;

/// Each column stacks what its time went to: areas are times, however short the spans.
std::string thread_row(const telemetry::RankTrace& trace, const Axis& axis, double y, Used& used) {
  std::vector<std::array<double, shade_count>> parts(axis_columns);
  for (const auto& segment : telemetry::segments_of(trace)) {
    const auto shade = static_cast<std::size_t>(shade_of(trace, segment));
    spread(axis, segment.begin, segment.end,
           [&](std::size_t column, double part) { parts[column][shade] += part; });
  }
  std::string text;
  std::vector<double> stacked(axis_columns, 0.0);
  for (std::size_t shade = 0; shade < static_cast<std::size_t>(Shade::rest); ++shade) {
    Heights heights(axis_columns);
    for (std::size_t column = 0; column < parts.size(); ++column) {
      heights[column] = {stacked[column], stacked[column] + parts[column][shade]};
      stacked[column] = heights[column].second;
    }
    const auto path = path_of(heights, y, bar_height, shades[shade].fill);
    used[shade] = used[shade] || !path.empty();
    text += path;
  }
  return text;
}

/// The share of each column in which some operation is under way.
std::string communication_row(const telemetry::RankTrace& trace, const Axis& axis, double y) {
  Heights heights(axis_columns);
  auto counted = axis.begin;
  for (const auto& span : trace.spans) {
    if (span.kind != SpanKind::operation || span.end <= counted) continue;
    // Operations under way at once count once.
    spread(axis, std::max(span.begin, counted), span.end,
           [&](std::size_t column, double part) { heights[column].second += part; });
    counted = span.end;
  }
  return path_of(heights, y, thin_height, base::step_fill::communication);
}

constexpr base::TextStyle title_style{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle tick_style{"tick", 11};
constexpr base::TextStyle time_style{"middle", 11, base::TextAnchor::middle};
constexpr base::TextStyle rank_style{"rank", 12, base::TextAnchor::end};
/// Columns of a path in the title, whose end is shown.
constexpr std::size_t path_columns = 80;

void draw_steps(base::SvgPicture& picture, const RunTrace& trace, const Axis& axis, double bottom) {
  double free_x = 0;
  for (const auto& span : trace.ranks.front().spans) {
    if (span.kind != SpanKind::step) continue;
    const double x = left + axis.column(span.begin);
    picture.add(format("<path d=\"M{:.0f} {:.0f}V{:.0f}\" class=\"step\"/>\n", x, top - 8, bottom));
    // A step too narrow for its number has none.
    if (x < free_x) continue;
    const auto words = format("step {}", span.place.number);
    picture.text(x + 3, top - 8, tick_style, words);
    free_x = x + 3 + base::text_width(words, tick_style.size);
  }
}

void draw_time_axis(base::SvgPicture& picture, const Axis& axis, double y) {
  const double whole = static_cast<double>(axis.end - axis.begin) / 1e6;
  const double power = std::pow(10.0, std::floor(std::log10(whole / 6)));
  const double step = power * (whole / power > 30 ? 5 : whole / power > 12 ? 2 : 1);
  for (double time = 0; time <= whole; time += step) {
    const double x = left + time / whole * axis_columns;
    picture.add(format("<path d=\"M{:.0f} {:.0f}v5\" class=\"step\"/>\n", x, y));
    picture.text(x, y + 17, time_style, format("{:g} ms", time));
  }
}

/// Legend of the shades that the picture has.
void draw_legend(base::SvgPicture& picture, double y, const Used& used) {
  std::vector<base::LegendEntry> entries;
  for (std::size_t shade = 0; shade < shades.size(); ++shade) {
    if (used[shade]) entries.push_back({shades[shade].fill, shades[shade].words});
  }
  entries.push_back({base::step_fill::communication, "communication under way"});
  picture.legend(left, y, tick_style, entries);
}

constexpr const char* style = "<style>.step{stroke:#888;fill:none}</style>\n";

}  // namespace

std::string trace_svg(const RunTrace& trace) {
  const auto axis = axis_of(trace);
  const auto rows = std::min(most_rows, trace.ranks.size());
  const double bottom = top + static_cast<double>(rows) * row_height;
  const double width = left + axis_columns + 40;
  const auto steps = static_cast<double>(trace.steps.last - trace.steps.first + 1);
  const auto title =
      format("Steps {} of {}: {} a step", trace.steps.text(),
             base::cut_to(base::printable(trace.folder.parent_path().parent_path().string()),
                          path_columns),
             base::duration_text(breakdown_of(trace.ranks.front()).wall / steps));
  base::SvgPicture picture;
  picture.text(left, 24, title_style, title);
  if (rows < trace.ranks.size()) {
    picture.text(left, 42, tick_style,
                 format("the first {} of {} ranks", rows, trace.ranks.size()));
  }
  Used used{};
  for (std::size_t row = 0; row < rows; ++row) {
    const auto& rank = trace.ranks[row];
    const double y = top + static_cast<double>(row) * row_height;
    std::string place;
    for (const auto& [name, at] : rank.coordinates) place += format(" {}{}", name, at);
    picture.text(left - 8, y + 14, rank_style, format("rank {}{}", rank.rank, place));
    picture.add(thread_row(rank, axis, y, used));
    picture.add(communication_row(rank, axis, y + bar_height + 2));
  }
  draw_steps(picture, trace, axis, bottom);
  draw_time_axis(picture, axis, bottom);
  draw_legend(picture, bottom + 36, used);
  return picture.document(title, width, bottom + legend_height, style);
}

}  // namespace trireme::report
