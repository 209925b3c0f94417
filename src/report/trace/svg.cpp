// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/report/trace.hpp"

#include "report/page/html.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::report {
namespace {

using base::format;
using telemetry::SpanKind;
using telemetry::TimeUse;

constexpr std::size_t most_rows = 64;
constexpr int columns = 1200;  ///< of the time axis, a pixel each
constexpr double left = 150;
constexpr double top = 70;
constexpr double row_height = 34;
constexpr double bar_height = 20;
constexpr double thin_height = 6;
constexpr double legend_height = 64;

/// What a column of the picture shows.
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
  const char* fill;
  const char* words;
};
/// Colours differ in lightness, too: with the commonest colour blindness they can be told apart.
constexpr std::array<ShadeText, shade_count> shades{{{"#6baed6", "forward"},
                                                     {"#31a354", "backward"},
                                                     {"#08519c", "update and norm"},
                                                     {"#fdae6b", "tensor-parallel"},
                                                     {"#d94801", "gradient reduction"},
                                                     {"#e5e5e5", "bubble"},
                                                     {"#bdbdbd", "other waits"},
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
    return static_cast<double>(time - begin) * columns / static_cast<double>(end - begin);
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
  const double to = std::min<double>(columns, axis.column(end));
  for (auto column = std::floor(from); column < to; ++column) {
    add(static_cast<std::size_t>(column), std::min(to, column + 1) - std::max(from, column));
  }
}

std::string bar(double x, double y, double width, double height, const char* fill) {
  return format(
      "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"{}\"/>\n", x, y,
      width, height, fill);
}

/// What takes most of each column; neighbours of one shade are one rectangle.
std::string thread_row(const telemetry::RankTrace& trace, const Axis& axis, double y) {
  std::vector<std::array<double, shade_count>> parts(columns);
  for (const auto& segment : telemetry::segments_of(trace)) {
    const auto shade = static_cast<std::size_t>(shade_of(trace, segment));
    spread(axis, segment.begin, segment.end,
           [&](std::size_t column, double part) { parts[column][shade] += part; });
  }
  std::string text;
  std::size_t begin = 0;
  std::size_t last = shade_count;
  for (std::size_t column = 0; column <= parts.size(); ++column) {
    std::size_t shade = shade_count;
    if (column < parts.size()) {
      const auto most = std::max_element(parts[column].begin(), parts[column].end());
      shade = *most > 0 ? static_cast<std::size_t>(most - parts[column].begin())
                        : static_cast<std::size_t>(Shade::rest);
    }
    if (shade == last) continue;
    if (last < shade_count && last != static_cast<std::size_t>(Shade::rest)) {
      text += bar(left + static_cast<double>(begin), y, static_cast<double>(column - begin),
                  bar_height, shades[last].fill);
    }
    begin = column;
    last = shade;
  }
  return text;
}

/// Columns in most of which communication is under way.
std::string communication_row(const telemetry::RankTrace& trace, const Axis& axis, double y) {
  std::vector<double> parts(columns + 1, 0.0);
  for (const auto& span : trace.spans) {
    if (span.kind != SpanKind::operation) continue;
    spread(axis, span.begin, span.end,
           [&](std::size_t column, double part) { parts[column] += part; });
  }
  std::string text;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t column = 0; column <= columns; ++column) {
    const bool busy = parts[column] >= 0.5;
    if (busy == inside) continue;
    if (inside) {
      text += bar(left + static_cast<double>(begin), y, static_cast<double>(column - begin),
                  thin_height, "#7f2704");
    }
    begin = column;
    inside = busy;
  }
  return text;
}

std::string words_at(double x, double y, const char* style, const std::string& words) {
  return format("<text x=\"{:.0f}\" y=\"{:.0f}\" class=\"{}\">{}</text>\n", x, y, style,
                escaped(words));
}

std::string steps_of(const RunTrace& trace, const Axis& axis, double bottom) {
  std::string text;
  for (const auto& span : trace.ranks.front().spans) {
    if (span.kind != SpanKind::step) continue;
    const double x = left + axis.column(span.begin);
    text += format("<path d=\"M{:.0f} {:.0f}V{:.0f}\" class=\"step\"/>\n", x, top - 8, bottom);
    text += words_at(x + 3, top - 8, "tick", format("step {}", span.place.number));
  }
  return text;
}

std::string time_axis(const Axis& axis, double y) {
  const double whole = static_cast<double>(axis.end - axis.begin) / 1e6;
  const double power = std::pow(10.0, std::floor(std::log10(whole / 6)));
  const double step = power * (whole / power > 30 ? 5 : whole / power > 12 ? 2 : 1);
  std::string text;
  for (double time = 0; time <= whole; time += step) {
    const double x = left + time / whole * columns;
    text += format("<path d=\"M{:.0f} {:.0f}v5\" class=\"step\"/>\n", x, y);
    text += words_at(x, y + 17, "middle", format("{:g} ms", time));
  }
  return text;
}

std::string legend(double y) {
  std::string text;
  double x = left;
  for (const auto& shade : shades) {
    if (std::string_view(shade.words) == "rest") continue;
    text += bar(x, y, 14, 12, shade.fill) + words_at(x + 19, y + 11, "tick", shade.words);
    x += 36 + 6.5 * static_cast<double>(std::string_view(shade.words).size());
  }
  return text + bar(x, y + 3, 14, thin_height, "#7f2704") +
         words_at(x + 19, y + 11, "tick", "communication under way");
}

constexpr const char* style =
    "<style>text{font-family:\"DejaVu Sans\",Verdana,sans-serif;fill:#222}"
    ".title{font-size:15px;font-weight:bold}.tick{font-size:11px}"
    ".middle{font-size:11px;text-anchor:middle}.rank{font-size:12px;text-anchor:end}"
    ".step{stroke:#888;fill:none}</style>\n";

}  // namespace

std::string trace_svg(const RunTrace& trace) {
  const auto axis = axis_of(trace);
  const auto rows = std::min(most_rows, trace.ranks.size());
  const double bottom = top + static_cast<double>(rows) * row_height;
  const double width = left + columns + 40;
  const auto title = format("Steps {} of {}", trace.steps.text(),
                            trace.folder.parent_path().parent_path().string());
  auto svg = format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 "
      "{0:.0f} {1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}<rect width=\"100%\" "
      "height=\"100%\" fill=\"#fff\"/>\n",
      width, bottom + legend_height, escaped(title), style);
  svg += words_at(left, 28, "title", title);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto& rank = trace.ranks[row];
    const double y = top + static_cast<double>(row) * row_height;
    std::string place;
    for (const auto& [name, at] : rank.coordinates) place += format(" {}{}", name, at);
    svg += words_at(left - 8, y + 14, "rank", format("rank {}{}", rank.rank, place));
    svg += thread_row(rank, axis, y) + communication_row(rank, axis, y + bar_height + 2);
  }
  if (rows < trace.ranks.size()) {
    svg += words_at(left + columns - 160, 28, "tick",
                    format("the first {} of {} ranks", rows, trace.ranks.size()));
  }
  svg += steps_of(trace, axis, bottom) + time_axis(axis, bottom) + legend(bottom + 36);
  return svg + "</svg>\n";
}

}  // namespace trireme::report
