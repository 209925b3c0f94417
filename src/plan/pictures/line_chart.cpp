// SPDX-License-Identifier: Apache-2.0
#include "line_chart.hpp"

#include "trireme/base/chart.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trireme::plan {
namespace {

using base::format;
using Look = ChartCurve::Look;
using Scale = ChartAxis::Scale;

constexpr double plot_left = 96;
constexpr double plot_top = 84;
constexpr double plot_width = 720;
constexpr double plot_height = 380;
constexpr double plot_bottom = plot_top + plot_height;
/// Room beyond the values, so that points and their labels stand inside.
constexpr double linear_room = 0.12;
constexpr double logarithmic_room = 1.35;
constexpr std::size_t most_ticks = 8;

constexpr base::TextStyle chart_title{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle chart_words{"plain", 12};
constexpr base::TextStyle x_tick{"tick", 11, base::TextAnchor::middle};
constexpr base::TextStyle y_tick{"number", 11, base::TextAnchor::end};

/// Values of an axis on the picture.
struct Range {
  Scale scale;
  double low;
  double high;

  double share(double value) const {
    const double part = scale == Scale::linear ? (value - low) / (high - low)
                                               : std::log(value / low) / std::log(high / low);
    return std::clamp(part, 0.0, 1.0);
  }
};

Range range_over(const LineChart& chart, Scale scale, double ChartPoint::*number) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const auto& curve : chart.curves) {
    for (const auto& point : curve.points) {
      low = std::min(low, point.*number);
      high = std::max(high, point.*number);
    }
  }
  if (high <= 0) return {Scale::linear, 0, 1};
  if (scale == Scale::linear) return {scale, 0, high * (1 + linear_room)};
  return {scale, low / logarithmic_room, high * logarithmic_room};
}

/// 1, 2 and 5 times powers of ten; of wider ranges the powers alone.
std::vector<double> logarithmic_ticks(const Range& range) {
  const bool is_wide = range.high / range.low > 1e3;
  std::vector<double> ticks;
  for (double power = std::floor(std::log10(range.low)); std::pow(10, power) <= range.high;
       ++power) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10, power);
      if (is_wide && factor > 1) continue;
      if (tick >= range.low && tick <= range.high) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> ticks_on(const ChartAxis& axis, const Range& range) {
  if (!axis.ticks.empty()) return axis.ticks;
  return range.scale == Scale::linear ? base::ticks_of(range.low, range.high, most_ticks)
                                      : logarithmic_ticks(range);
}

/// Places of values on the picture.
struct Plot {
  Range across;
  Range up;

  double x(double value) const { return plot_left + across.share(value) * plot_width; }
  double y(double value) const { return plot_bottom - up.share(value) * plot_height; }
};

void draw_axes(base::SvgPicture& picture, const LineChart& chart, const Plot& plot) {
  for (const double tick : ticks_on(chart.x, plot.across)) {
    picture.add(
        format("<path d=\"M{:.2f} {:.2f}v5\" class=\"axis\"/>\n", plot.x(tick), plot_bottom));
    picture.text(plot.x(tick), plot_bottom + 19, x_tick, base::short_text(tick));
  }
  for (const double tick : ticks_on(chart.y, plot.up)) {
    picture.add(format("<path d=\"M{:.2f} {:.2f}h{:.2f}\" class=\"grid\"/>\n", plot_left,
                       plot.y(tick), plot_width));
    picture.text(plot_left - 8, plot.y(tick) + 4, y_tick, base::short_text(tick));
  }
  picture.add(format("<path d=\"M{0:.2f} {1:.2f}V{2:.2f}H{3:.2f}\" class=\"axis\"/>\n", plot_left,
                     plot_top, plot_bottom, plot_left + plot_width));
  picture.text(plot_left + plot_width / 2, plot_bottom + 40, x_tick, chart.x.title);
  picture.text(24, plot_top - 12, chart_words, chart.y.title);
}

void draw_curve(base::SvgPicture& picture, const ChartCurve& curve, const Plot& plot) {
  std::string path;
  for (const auto& point : curve.points) {
    path += format("{}{:.2f} {:.2f}", path.empty() ? "M" : "L", plot.x(point.x), plot.y(point.y));
  }
  if (curve.look != Look::dots && curve.points.size() > 1) {
    picture.add(format("<path d=\"{}\" stroke=\"{}\" class=\"{}\"/>\n", path, curve.fill,
                       curve.look == Look::ideal ? "ideal" : "line"));
  }
  for (const auto& point : curve.points) {
    if (curve.look != Look::ideal) {
      picture.add(format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"4\" fill=\"{}\"/>\n",
                         plot.x(point.x), plot.y(point.y), curve.fill));
    }
    if (!point.label.empty()) {
      picture.text(plot.x(point.x), plot.y(point.y) - 9, x_tick, point.label);
    }
  }
}

constexpr const char* chart_style =
    "<style>.axis{stroke:#666;fill:none}.grid{stroke:#e5e5e5;fill:none}.line{fill:none;"
    "stroke-width:2}.ideal{fill:none;stroke-dasharray:6 4}</style>\n";

}  // namespace

std::string svg_of(const LineChart& chart) {
  const Plot plot{range_over(chart, chart.x.scale, &ChartPoint::x),
                  range_over(chart, chart.y.scale, &ChartPoint::y)};
  base::SvgPicture picture;
  picture.text(24, 28, chart_title, chart.title);
  picture.text(24, 48, chart_words, chart.subtitle);
  draw_axes(picture, chart, plot);
  std::vector<base::LegendEntry> entries;
  for (const auto& curve : chart.curves) {
    draw_curve(picture, curve, plot);
    entries.push_back({curve.fill, curve.name});
  }
  picture.legend(plot_left, plot_bottom + 56, chart_words, entries);
  return picture.document(chart.title, plot_left + plot_width + 40, plot_bottom + 84, chart_style);
}

}  // namespace trireme::plan
