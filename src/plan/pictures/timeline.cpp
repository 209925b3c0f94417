// SPDX-License-Identifier: Apache-2.0
// A step on a picture: a row for each simulated rank, with four lanes.
#include "trireme/base/chart.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"

#include "drawings.hpp"

#include <algorithm>
#include <array>

namespace trireme::plan {
namespace {

using base::format;
using predict::TimelineRow;
using predict::TimelineSpan;
using Kind = TimelineSpan::Kind;

/// Rows beyond are left out, and said to be.
constexpr std::size_t most_rows = 32;
constexpr double axis_width = 1200;
constexpr double step_left = 24;
constexpr double step_top = 84;
constexpr double compute_height = 18;
constexpr double lane_height = 6;
constexpr double lane_gap = 2;
constexpr double step_row_gap = 12;
constexpr double step_row_height = compute_height + 3 * (lane_height + lane_gap) + step_row_gap;
constexpr double step_below = 74;
constexpr std::size_t most_step_ticks = 12;
constexpr double milliseconds = 1000;

constexpr base::TextStyle title_of_step{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle words_of_step{"plain", 12};
constexpr base::TextStyle stage_of_step{"stage", 12, base::TextAnchor::end, true};
constexpr base::TextStyle rank_of_step{"rank", 11, base::TextAnchor::end};
constexpr base::TextStyle tick_of_step{"tick", 11, base::TextAnchor::middle};

constexpr std::string_view lane_fill = "#f5f5f5";

constexpr std::array span_kinds{Kind::forward, Kind::backward, Kind::weight,
                                Kind::update,  Kind::data,     Kind::message};

std::string_view fill_of(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return base::step_fill::forward;
    case Kind::backward:
      return base::step_fill::backward;
    case Kind::weight:
      return base::step_fill::weight;
    case Kind::update:
      return base::step_fill::update;
    case Kind::data:
      return base::step_fill::gradients;
    case Kind::message:
      break;
  }
  return base::step_fill::communication;
}

/// Number of a lane from above: computation, waits for tensor-parallel ranks, collectives of
/// data-parallel ones, messages.
int lane_of(Kind kind) {
  return kind == Kind::data ? 2 : kind == Kind::message ? 3 : 0;
}

double lane_top(double y, int lane) {
  return lane == 0 ? y : y + compute_height + lane_gap + (lane - 1) * (lane_height + lane_gap);
}

std::string alike_text(const TimelineRow& row) {
  if (row.alike == 1) return format("rank {}", row.rank);
  return format("rank {} and {} like it", row.rank, row.alike - 1);
}

/// Where the time axis begins, right of the names of rows.
double axis_left(const std::vector<TimelineRow>& rows) {
  double width = 0;
  for (const auto& row : rows) {
    width = std::max(width, base::text_width(alike_text(row), rank_of_step.size));
  }
  return step_left + width + 10;
}

struct TimeAxis {
  double begin;
  double pixels_per_second;

  double x(double seconds) const { return begin + seconds * pixels_per_second; }
};

void draw_spans(base::SvgPicture& picture, const TimeAxis& axis, const TimelineRow& row, double y) {
  for (const auto& span : row.spans) {
    const int lane = lane_of(span.kind);
    const double x = axis.x(span.begin);
    const double width = (span.end - span.begin) * axis.pixels_per_second;
    picture.rectangle(x, lane_top(y, lane), width, lane == 0 ? compute_height : lane_height,
                      fill_of(span.kind));
    if (span.tensor > 0) {
      const double height = lane_height * std::min(1.0, span.tensor / (span.end - span.begin));
      picture.rectangle(x, lane_top(y, 1) + lane_height - height, width, height,
                        base::step_fill::tensor);
    }
    const auto number = format("{}", span.micro_batch);
    if (lane != 0 || span.micro_batch < 0) continue;
    if (base::text_width(number, tick_of_step.size) + 3 > width) continue;
    picture.text(x + width / 2, y + compute_height - 5, tick_of_step, number);
  }
}

void draw_step_axis(base::SvgPicture& picture, const TimeAxis& axis, double seconds, double y) {
  picture.add(
      format("<path d=\"M{:.2f} {:.2f}h{:.2f}\" class=\"axis\"/>\n", axis.begin, y, axis_width));
  for (const double tick : base::ticks_of(0, milliseconds * seconds, most_step_ticks)) {
    const double x = axis.x(tick / milliseconds);
    picture.add(format("<path d=\"M{:.2f} {:.2f}v5\" class=\"axis\"/>\n", x, y));
    picture.text(x, y + 18, tick_of_step, base::short_text(tick));
  }
  picture.text(axis.begin + axis_width / 2, y + 36, tick_of_step, "milliseconds");
}

std::vector<base::LegendEntry> step_legend(const std::vector<TimelineRow>& rows) {
  std::array<bool, span_kinds.size()> used{};
  bool has_tensor = false;
  for (const auto& row : rows) {
    for (const auto& span : row.spans) {
      used[static_cast<std::size_t>(span.kind)] = true;
      has_tensor = has_tensor || span.tensor > 0;
    }
  }
  std::vector<base::LegendEntry> entries;
  const auto add = [&](Kind kind) {
    if (used[static_cast<std::size_t>(kind)]) {
      entries.push_back({fill_of(kind), std::string(name(kind))});
    }
  };
  for (const auto kind : {Kind::forward, Kind::backward, Kind::weight, Kind::update}) add(kind);
  if (has_tensor) {
    entries.push_back({base::step_fill::tensor, "waits for tensor-parallel ranks (height: part)"});
  }
  for (const auto kind : {Kind::data, Kind::message}) add(kind);
  entries.push_back({base::step_fill::bubble, "no computation"});
  return entries;
}

}  // namespace

std::string_view name(Kind kind) {
  switch (kind) {
    case Kind::forward:
      return "forward";
    case Kind::backward:
      return "backward";
    case Kind::weight:
      return "gradients of weights";
    case Kind::update:
      return "update";
    case Kind::data:
      return "collectives of data-parallel ranks";
    case Kind::message:
      break;
  }
  return "messages to other stages";
}

std::string timeline_drawing(const Pictures& pictures) {
  const auto& timeline = pictures.timeline;
  auto rows = timeline.rows;
  if (rows.size() > most_rows) rows.resize(most_rows);
  const TimeAxis axis{axis_left(rows), axis_width / timeline.seconds};
  const auto title = format("A step of {} on {}: {:.1f} ms", pictures.layout, pictures.machine,
                            milliseconds * timeline.seconds);
  base::SvgPicture picture;
  picture.text(step_left, 28, title_of_step, title);
  picture.text(step_left, 50, words_of_step,
               "lanes of a rank from above: computation with its micro-batches, waits for "
               "tensor-parallel ranks, collectives of data-parallel ranks, messages");
  if (rows.size() < timeline.rows.size()) {
    picture.text(step_left, 68, words_of_step,
                 format("the first {} of {} that differ", rows.size(), timeline.rows.size()));
  }
  double y = step_top;
  for (const auto& row : rows) {
    picture.rectangle(axis.begin, y, axis_width, compute_height, base::step_fill::bubble);
    for (int lane = 1; lane < 4; ++lane) {
      picture.rectangle(axis.begin, lane_top(y, lane), axis_width, lane_height, lane_fill);
    }
    picture.text(axis.begin - 8, y + 14, stage_of_step, format("stage {}", row.stage));
    picture.text(axis.begin - 8, y + 31, rank_of_step, alike_text(row));
    draw_spans(picture, axis, row, y);
    y += step_row_height;
  }
  draw_step_axis(picture, axis, timeline.seconds, y);
  const auto entries = step_legend(rows);
  picture.legend(step_left, y + 50, words_of_step, entries);
  return picture.document(title, axis.begin + axis_width + 40, y + step_below,
                          "<style>.axis{stroke:#666;fill:none}</style>\n");
}

}  // namespace trireme::plan
