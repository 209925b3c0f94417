// SPDX-License-Identifier: Apache-2.0
#include "charts.hpp"

#include "trireme/base/chart.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report {
namespace {

using base::format;
using base::short_text;
using base::ticks_of;

/// The drawing's own units; it is stretched to the page's width.
constexpr double width = 1000;
constexpr double height = 300;
constexpr std::size_t y_ticks = 5;
/// Few enough for a page as narrow as a telephone.
constexpr std::size_t x_ticks = 5;
/// Share of values that may lie outside of a picture that leaves far values out, at each end.
constexpr double far_share = 0.01;

struct Frame {
  double left;
  double right;
  double low;
  double high;

  double x(double value) const { return (value - left) / std::max(right - left, 1e-300) * width; }
  /// Far values stay near the picture: coordinates of any size are not drawn by every browser.
  double y(double value) const {
    const double up = (value - low) / std::max(high - low, 1e-300) * height;
    return height - std::clamp(up, -height, 2 * height);
  }
};

/// Lines through the points; a break ends one, and so does a value that is not there.
std::string line_path(const Frame& frame, std::span<const double> xs, std::span<const double> ys,
                      const std::vector<std::size_t>& breaks) {
  std::string path;
  bool draws = false;
  auto next_break = breaks.begin();
  for (std::size_t index = 0; index < ys.size(); ++index) {
    const bool is_there = std::isfinite(ys[index]) && std::isfinite(xs[index]);
    if (is_there) {
      // A point alone is drawn by the ends of a line without length.
      path += format("{}{:.1f} {:.1f}{}", draws ? "L" : "M", frame.x(xs[index]), frame.y(ys[index]),
                     draws ? "" : "h0");
    }
    draws = is_there;
    if (next_break != breaks.end() && *next_break == index) {
      draws = false;
      ++next_break;
    }
  }
  return path;
}

/// A line from top to bottom where a later start of the run begins.
Html start_marks(const Frame& frame, const DrawnRun& run) {
  if (run.starts.empty()) return {};
  std::string path;
  for (const auto column : run.starts) {
    if (!std::isfinite(run.at.step[column])) continue;
    path += format("M{:.1f} 0V{}", frame.x(run.at.step[column]), height);
  }
  return markup("<path class=\"starts\" d=\"{}\"/>", path);
}

/// Area between two lines over all columns.
std::string area_path(const Frame& frame, std::span<const double> xs, std::span<const double> lows,
                      std::span<const double> highs) {
  std::string path;
  const auto add = [&](std::size_t index, double value) {
    if (!std::isfinite(lows[index]) || !std::isfinite(xs[index])) return;
    path += format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", frame.x(xs[index]), frame.y(value));
  };
  for (std::size_t index = 0; index < xs.size(); ++index) add(index, highs[index]);
  for (std::size_t index = xs.size(); index-- > 0;) add(index, lows[index]);
  if (!path.empty()) path += 'Z';
  return path;
}

Html plot(const Frame& frame, const std::string& label, const Html& drawing) {
  Html y;
  Html grid;
  for (const double tick : ticks_of(frame.low, frame.high, y_ticks)) {
    const double from_below = 100 - frame.y(tick) / height * 100;
    y += markup("<span style=\"bottom:{:.2f}%\">{}</span>", from_below, short_text(tick));
    grid += markup("<path d=\"M0 {:.1f}H{}\"/>", frame.y(tick), width);
  }
  Html x;
  for (const double tick : ticks_of(frame.left, frame.right, x_ticks)) {
    x += markup("<span style=\"left:{:.2f}%\">{}</span>", frame.x(tick) / width * 100,
                short_text(tick));
  }
  return markup(
      "<div class=\"plot\"><div class=\"y\">{}</div><svg viewBox=\"0 0 {} {}\" "
      "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\"><g class=\"grid\">{}</g>{}</svg>"
      "<div class=\"x\"><i class=\"axis\">step</i>{}</div></div>",
      y, width, height, label, grid, drawing, x);
}

/// As wide as these places, which ascend, or a span from a single one.
Frame frame_over(const std::vector<const std::vector<double>*>& places, double low, double high) {
  Frame frame{telemetry::absent, telemetry::absent, low, high};
  for (const auto* each : places) {
    if (each->empty()) continue;
    frame.left = std::fmin(frame.left, each->front());
    frame.right = std::fmax(frame.right, each->back());
  }
  if (!(frame.right > frame.left)) frame.right = frame.left + 1;
  return frame;
}

std::vector<double> means_of(const DrawnRun& run, std::size_t curve) {
  std::vector<double> means;
  for (const auto& range : run.curves[curve]) means.push_back(range.mean);
  return means;
}

Html band(const Frame& frame, const DrawnRun& run, std::size_t curve) {
  if (!run.is_reduced()) return {};
  std::vector<double> lows;
  std::vector<double> highs;
  for (const auto& range : run.curves[curve]) {
    lows.push_back(range.lowest);
    highs.push_back(range.highest);
  }
  return markup("<path class=\"band\" d=\"{}\"/>", area_path(frame, run.at.step, lows, highs));
}

Html run_lines(const Frame& frame, const DrawnRun& run, std::size_t index, std::size_t curve) {
  const auto& spec = all_curves()[curve];
  Html lines;
  if (spec.number == nullptr) {
    const auto path = line_path(frame, run.held_out_at.step, run.held_out, {});
    // Each point by itself.
    std::vector<std::size_t> all;
    for (std::size_t point = 0; point < run.held_out.size(); ++point) all.push_back(point);
    lines = markup("<path class=\"line\" d=\"{}\"/><path class=\"dots\" d=\"{}\"/>", path,
                   line_path(frame, run.held_out_at.step, run.held_out, all));
  } else {
    const auto means = means_of(run, curve);
    const auto raw = line_path(frame, run.at.step, means, run.breaks);
    const auto bold = spec.is_smoothed ? line_path(frame, run.at.step,
                                                   smoothed(means, first_smoothing), run.breaks)
                                       : raw;
    lines = band(frame, run, curve);
    lines += markup("<path class=\"raw\" d=\"{}\"/><path class=\"line\" d=\"{}\"/>",
                    spec.is_smoothed ? raw : std::string{}, bold);
  }
  lines += start_marks(frame, run);
  return markup("<g class=\"run\" data-run=\"{}\">{}</g>", index, lines);
}

}  // namespace

Domain domain_of(const Curve& curve, std::span<const DrawnRun> runs) {
  const auto which = static_cast<std::size_t>(&curve - all_curves().data());
  std::vector<double> values;
  for (const auto& run : runs) {
    if (curve.number == nullptr)
      values.insert(values.end(), run.held_out.begin(), run.held_out.end());
    for (const auto& range : run.curves[which]) {
      values.push_back(range.lowest);
      values.push_back(range.highest);
    }
  }
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  Domain domain;
  if (values.empty()) return domain;
  std::sort(values.begin(), values.end());
  const auto away = curve.leaves_far_values_out
                        ? static_cast<std::size_t>(far_share * static_cast<double>(values.size()))
                        : 0;
  domain.is_empty = false;
  domain.low = values[away];
  domain.high = values[values.size() - 1 - away];
  const auto positive = std::find_if(values.begin() + static_cast<std::ptrdiff_t>(away),
                                     values.end(), [](double value) { return value > 0; });
  if (positive != values.end()) domain.least_positive = *positive;
  const double pad = domain.high > domain.low ? 0.04 * (domain.high - domain.low)
                                              : std::max(std::fabs(domain.high) * 0.1, 1e-12);
  // Nothing here is below zero: no axis shows what cannot be.
  domain.low = domain.low >= 0 ? std::max(0.0, domain.low - pad) : domain.low - pad;
  domain.high += pad;
  return domain;
}

Html curve_figure(const Curve& curve, std::span<const DrawnRun> runs) {
  const auto domain = domain_of(curve, runs);
  if (domain.is_empty) return {};
  const auto which = static_cast<std::size_t>(&curve - all_curves().data());
  std::vector<const std::vector<double>*> places;
  for (const auto& run : runs) places.push_back(&run.at.step);
  const auto frame = frame_over(places, domain.low, domain.high);
  Html lines;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    lines += run_lines(frame, runs[index], index, which);
  }
  const auto label = format("{} ({}) over steps {} to {}, between {} and {}", curve.title,
                            curve.unit, short_text(frame.left), short_text(frame.right),
                            short_text(domain.low), short_text(domain.high));
  return markup(
      "<figure class=\"chart\" data-curve=\"{}\"><figcaption><b>{}</b> <span>{}{}</span>"
      "</figcaption>{}</figure>\n",
      curve.id, curve.title, curve.unit,
      curve.leaves_far_values_out ? "; the farthest hundredths lie outside" : "",
      plot(frame, label, lines));
}

Html parts_figure(const DrawnRun& run, std::size_t index) {
  std::vector<double> sums(run.parts_at.step.size(), 0.0);
  for (const auto& part : run.parts) {
    for (std::size_t column = 0; column < sums.size(); ++column) sums[column] += part[column];
  }
  auto sorted = sums;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.size() < 2 || sorted.back() <= 0) return {};
  const auto away = static_cast<std::size_t>(2 * far_share * static_cast<double>(sorted.size()));
  const double high = 1.05 * sorted[sorted.size() - 1 - away];
  const auto frame = frame_over({&run.parts_at.step}, 0, high);
  Html areas;
  std::vector<double> below(sums.size(), 0.0);
  for (std::size_t part = 0; part < part_count; ++part) {
    auto above = below;
    for (std::size_t column = 0; column < above.size(); ++column) {
      above[column] += run.parts[part][column];
    }
    areas += markup("<path class=\"part p{}\" d=\"{}\"/>", part,
                    area_path(frame, run.parts_at.step, below, above));
    below = std::move(above);
  }
  areas += start_marks(frame, run);
  const auto label = format("milliseconds of a step by part, over steps {} to {}",
                            short_text(frame.left), short_text(frame.right));
  return markup(
      "<figure class=\"chart\" data-parts=\"{}\" data-high=\"{:.6g}\"><figcaption><b>{}</b> "
      "<span>milliseconds a step on rank 0; the longest fiftieth lies outside</span></figcaption>"
      "{}</figure>\n",
      index, high, run.run->name, plot(frame, label, areas));
}

}  // namespace trireme::report
