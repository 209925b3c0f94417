// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Curves over two axes. Private to the room.
namespace trireme::plan {

struct ChartPoint {
  double x = 0;
  double y = 0;
  /// Stands above the point.
  std::string label = {};
};

struct ChartCurve {
  std::string name;
  std::string_view fill;
  std::vector<ChartPoint> points;
  enum class Look {
    line,   ///< with a dot for each point
    ideal,  ///< dashed, without
    dots
  };
  Look look = Look::line;
};

struct ChartAxis {
  /// With its unit.
  std::string title;
  enum class Scale { linear, logarithmic };
  Scale scale = Scale::linear;
  /// Empty: round numbers.
  std::vector<double> ticks = {};
};

struct LineChart {
  std::string title;
  std::string subtitle;
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartCurve> curves;
};

/// A self-contained document. Values on a logarithmic axis are above zero.
std::string svg_of(const LineChart& chart);

}  // namespace trireme::plan
