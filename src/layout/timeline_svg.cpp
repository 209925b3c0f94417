// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/svg.hpp"
#include "trireme/layout/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace trireme::layout {
namespace {

constexpr double row_height = 34;
constexpr double cell_height = 26;
constexpr double left_margin = 76;
constexpr double right_margin = 64;
constexpr double top_margin = 62;
constexpr double bottom_margin = 64;
constexpr double least_width = 720;   ///< of the time axis
constexpr double most_width = 6000;   ///< beyond it cells shrink and lose their numbers
constexpr double wanted_cell = 24;    ///< width of the shortest action
constexpr double letter_width = 6.6;  ///< of a digit at the cells' font size

struct Colour {
  const char* fill;
  const char* text;
};

/// Light to dark by chunk; blue forward, green backward, orange for separate weight gradients: with
/// the commonest colour blindness they differ too, because lightness also differs.
Colour colour(ActionKind kind, int virtual_stage) {
  static constexpr std::array<Colour, 4> forward = {
      {{"#9ecae1", "#08306b"}, {"#6baed6", "#08306b"}, {"#4292c6", "#fff"}, {"#2171b5", "#fff"}}};
  static constexpr std::array<Colour, 4> backward = {
      {{"#c7e9c0", "#00441b"}, {"#74c476", "#00441b"}, {"#31a354", "#fff"}, {"#006d2c", "#fff"}}};
  static constexpr std::array<Colour, 4> weight = {
      {{"#fdd0a2", "#7f2704"}, {"#fdae6b", "#7f2704"}, {"#f16913", "#fff"}, {"#d94801", "#fff"}}};
  const auto shade = static_cast<std::size_t>(virtual_stage) % forward.size();
  switch (kind) {
    case ActionKind::forward:
      return forward[shade];
    case ActionKind::backward:
    case ActionKind::backward_input:
      return backward[shade];
    case ActionKind::backward_weight:
      return weight[shade];
  }
  return {"#f00", "#fff"};
}

/// A coordinate to a hundredth of a pixel.
std::string at(double pixels) {
  return base::number_text(std::round(pixels * 100) / 100);
}

constexpr base::TextStyle title_style{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle subtitle_style{"subtitle", 12};
constexpr base::TextStyle stage_style{"stage", 12, base::TextAnchor::end};
constexpr base::TextStyle live_style{"live", 12, base::TextAnchor::middle};
constexpr base::TextStyle tick_style{"tick", 11, base::TextAnchor::middle};

/// Sizes that all parts of the picture share.
struct Frame {
  double pixels_per_unit;
  double time_width;
  double height;  ///< of all rows

  double x(double time) const { return left_margin + time * pixels_per_unit; }
  static double y(int stage) { return top_margin + stage * row_height; }
};

Frame frame_of(const Schedule& schedule, const Simulation& simulation) {
  double shortest = simulation.makespan;
  for (const auto& stage : simulation.timeline) {
    for (const TimedAction& timed : stage) {
      if (timed.end > timed.begin) shortest = std::min(shortest, timed.end - timed.begin);
    }
  }
  const double makespan = simulation.makespan > 0 ? simulation.makespan : 1;
  const double wanted = shortest > 0 ? wanted_cell / shortest * makespan : least_width;
  const double width = std::clamp(wanted, least_width, most_width);
  return {width / makespan, width, schedule.stages * row_height};
}

std::string cell(const Frame& frame, const Schedule& schedule, int stage,
                 const TimedAction& timed) {
  const Colour shade = colour(timed.action.kind, timed.action.virtual_stage);
  const double width = (timed.end - timed.begin) * frame.pixels_per_unit;
  const double y = Frame::y(stage) + (row_height - cell_height) / 2;
  const std::string chunk = schedule.virtual_stages == 1
                                ? ""
                                : base::format(", virtual stage {}", timed.action.virtual_stage);
  std::string svg = base::format(
      "<g><title>{} of micro-batch {}{}: {} to {}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" "
      "height=\"{}\" fill=\"{}\" class=\"cell\"/>",
      name(timed.action.kind), timed.action.micro_batch, chunk, base::number_text(timed.begin),
      base::number_text(timed.end), at(frame.x(timed.begin)), at(y), at(width), at(cell_height),
      shade.fill);
  const std::string number = std::to_string(timed.action.micro_batch);
  if (static_cast<double>(number.size()) * letter_width + 2 <= width) {
    svg += base::format("<text x=\"{}\" y=\"{}\" class=\"number\" style=\"fill:{}\">{}</text>",
                        at(frame.x(timed.begin) + width / 2), at(y + cell_height / 2 + 4),
                        shade.text, number);
  }
  return svg + "</g>\n";
}

void draw_row(base::SvgPicture& picture, const Frame& frame, const Schedule& schedule,
              const Simulation& simulation, int stage) {
  const double middle = Frame::y(stage) + row_height / 2 + 4;
  const auto index = static_cast<std::size_t>(stage);
  picture.text(left_margin - 10, middle, stage_style, base::format("stage {}", stage));
  picture.add(base::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"url(#idle)\"/>\n", at(left_margin),
      at(Frame::y(stage) + (row_height - cell_height) / 2), at(frame.time_width), at(cell_height)));
  for (const TimedAction& timed : simulation.timeline[index]) {
    picture.add(cell(frame, schedule, stage, timed));
  }
  picture.text(frame.x(simulation.makespan) + 24, middle, live_style,
               std::to_string(simulation.peak_live_total[index]));
}

/// A step of 1, 2 or 5 times a power of ten that makes at most twelve ticks.
double tick_step(double makespan) {
  double step = std::pow(10.0, std::floor(std::log10(std::max(makespan, 1e-9))) - 1);
  while (makespan / step > 12) {
    for (const double factor : {2.0, 2.5, 2.0}) {
      if (makespan / step > 12) step *= factor;
    }
  }
  return step;
}

void draw_time_axis(base::SvgPicture& picture, const Frame& frame, double makespan) {
  const double y = top_margin + frame.height;
  picture.add(base::format("<path d=\"M{0} {1}H{2}\" class=\"axis\"/>\n", at(left_margin),
                           at(y + 2), at(frame.x(makespan))));
  if (makespan <= 0) return;
  const double step = tick_step(makespan);
  for (int tick = 0; tick * step <= makespan * (1 + 1e-9); ++tick) {
    const double time = std::round(tick * step * 1e6) / 1e6;
    picture.add(
        base::format("<path d=\"M{} {}v4\" class=\"axis\"/>\n", at(frame.x(time)), at(y + 2)));
    picture.text(frame.x(time), y + 18, tick_style, base::number_text(time));
  }
}

void draw_legend(base::SvgPicture& picture, const Frame& frame, const Schedule& schedule) {
  std::set<std::pair<ActionKind, int>> entries;
  for (const Action& action : schedule.actions.front()) {
    entries.insert({action.kind, action.virtual_stage});
  }
  const double y = top_margin + frame.height + 34;
  double x = left_margin;
  const auto entry = [&](const char* fill, const std::string& words) {
    picture.add(base::format(
        "<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"14\" fill=\"{}\" class=\"cell\"/>\n", at(x),
        at(y), fill));
    picture.text(x + 22, y + 11, subtitle_style, words);
    x += 22 + base::text_width(words, subtitle_style.size) + 18;
  };
  for (const auto& [kind, chunk] : entries) {
    entry(colour(kind, chunk).fill, schedule.virtual_stages == 1
                                        ? std::string(name(kind))
                                        : base::format("{}, virtual stage {}", name(kind), chunk));
  }
  entry("url(#idle)", "idle");
}

constexpr const char* style = R"svg(<style>
.number { font-size: 11px; text-anchor: middle; }
.cell { stroke: #fff; stroke-width: 1; }
.axis { stroke: #666; fill: none; }
</style>
<defs><pattern id="idle" width="6" height="6" patternUnits="userSpaceOnUse"
 patternTransform="rotate(45)"><rect width="6" height="6" fill="#f2f2f2"/>
<rect width="2" height="6" fill="#dcdcdc"/></pattern></defs>
)svg";

}  // namespace

std::string timeline_svg(const Schedule& schedule, const Simulation& simulation) {
  TRIREME_EXPECT(simulation.timeline.size() == static_cast<std::size_t>(schedule.stages),
                 "the simulation of this schedule");
  const Frame frame = frame_of(schedule, simulation);
  const double width = left_margin + frame.time_width + right_margin;
  const double height = top_margin + frame.height + bottom_margin;
  const std::string title = base::format(
      "{}: {} stages, {} micro-batches{}", name(schedule.kind), schedule.stages,
      schedule.micro_batches,
      schedule.virtual_stages == 1 ? ""
                                   : base::format(", {} virtual stages", schedule.virtual_stages));
  base::SvgPicture picture;
  picture.text(left_margin, 24, title_style, title);
  picture.text(left_margin, 44, subtitle_style,
               base::format("makespan {}, bubble {:.1f} %", base::number_text(simulation.makespan),
                            100 * simulation.bubble_fraction));
  picture.text(frame.x(simulation.makespan) + 24, top_margin - 8, live_style, "live");
  for (int stage = 0; stage < schedule.stages; ++stage) {
    draw_row(picture, frame, schedule, simulation, stage);
  }
  draw_time_axis(picture, frame, simulation.makespan);
  draw_legend(picture, frame, schedule);
  return picture.document(title, width, height, style);
}

}  // namespace trireme::layout
