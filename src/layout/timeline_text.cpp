// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/layout/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace trireme::layout {
namespace {

/// Left edges of cells, by chunk.
constexpr std::array chunk_edges = {"│", "┃", "║", "┆", "┇"};
constexpr const char* idle_fill = "·";

const char* edge(int virtual_stage) {
  return chunk_edges[static_cast<std::size_t>(virtual_stage) % chunk_edges.size()];
}

const char* fill(ActionKind kind) {
  switch (kind) {
    case ActionKind::forward:
      return " ";
    case ActionKind::backward:
    case ActionKind::backward_input:
      return "▒";
    case ActionKind::backward_weight:
      return "░";
  }
  return "?";
}

std::string repeated(const char* glyph, std::int64_t count) {
  std::string text;
  for (std::int64_t at = 0; at < count; ++at) text += glyph;
  return text;
}

/// Cell of `width` columns: edge, number, fill. A narrow cell first loses its edge (a backward
/// keeps a column of fill instead, to differ from a forward), then the number's leading digits.
std::string cell(const Action& action, std::int64_t width) {
  if (width <= 0) return "";
  std::string number = std::to_string(action.micro_batch);
  const auto digits = static_cast<std::int64_t>(number.size());
  const std::int64_t least_fill = action.kind == ActionKind::forward || width == 1 ? 0 : 1;
  const bool edged = width >= 1 + digits + least_fill;
  const std::int64_t room = width - (edged ? 1 : 0) - least_fill;
  if (digits > room) number = number.substr(number.size() - static_cast<std::size_t>(room));
  const auto used = static_cast<std::int64_t>(number.size()) + (edged ? 1 : 0);
  return (edged ? edge(action.virtual_stage) : "") + number +
         repeated(fill(action.kind), width - used);
}

std::string stage_line(const std::vector<TimedAction>& timeline, double columns_per_unit,
                       double makespan) {
  const auto column = [&](double time) { return std::llround(time * columns_per_unit); };
  std::string line;
  std::int64_t at = 0;
  for (const TimedAction& timed : timeline) {
    const std::int64_t begin = std::max(at, static_cast<std::int64_t>(column(timed.begin)));
    const std::int64_t end = std::max(begin, static_cast<std::int64_t>(column(timed.end)));
    line += repeated(idle_fill, begin - at) + cell(timed.action, end - begin);
    at = end;
  }
  return line + repeated(idle_fill, column(makespan) - at);
}

/// Columns a unit of time. Equal actions should look equal: the shortest gets a whole number of
/// columns where it gets one at all.
double scale(const Simulation& simulation, int columns) {
  if (simulation.makespan <= 0) return 0;
  const double columns_per_unit = columns / simulation.makespan;
  double shortest = simulation.makespan;
  for (const auto& stage : simulation.timeline) {
    for (const TimedAction& timed : stage) {
      if (timed.end > timed.begin) shortest = std::min(shortest, timed.end - timed.begin);
    }
  }
  // A hair more, so that a sum of rounded times does not cost a column.
  const double whole_columns = std::floor(columns_per_unit * shortest + 1e-9);
  return whole_columns >= 1 ? whole_columns / shortest : columns_per_unit;
}

std::string legend(const Schedule& schedule) {
  std::set<ActionKind> kinds;
  for (const auto& actions : schedule.actions) {
    for (const Action& action : actions) kinds.insert(action.kind);
  }
  std::string text;
  for (const ActionKind kind : kinds) {
    text += base::format("{}3{} {}   ", edge(0), repeated(fill(kind), 2), name(kind));
  }
  text += base::format("{} idle", repeated(idle_fill, 3));
  if (schedule.virtual_stages == 1) return text;
  text += "   virtual stages:";
  for (int chunk = 0; chunk < schedule.virtual_stages; ++chunk) {
    text += base::format(" {} {}", edge(chunk), chunk);
  }
  return text;
}

}  // namespace

std::string timeline_text(const Schedule& schedule, const Simulation& simulation, int columns) {
  TRIREME_EXPECT(simulation.timeline.size() == static_cast<std::size_t>(schedule.stages),
                 "the simulation of this schedule");
  const std::size_t stage_width = std::to_string(schedule.stages - 1).size();
  const int peak =
      *std::max_element(simulation.peak_live_total.begin(), simulation.peak_live_total.end());
  const std::size_t live_width = std::to_string(peak).size();
  // Frame of the time axis: "stage 0 " before it, "▏ live 4" after it.
  const auto frame = static_cast<int>(7 + stage_width + 7 + live_width);
  const double columns_per_unit = scale(simulation, std::max(columns - frame, 1));

  std::string text = base::format(
      "{}: {} stages, {} micro-batches{}; makespan {}, bubble {:.1f} %\n", name(schedule.kind),
      schedule.stages, schedule.micro_batches,
      schedule.virtual_stages == 1 ? ""
                                   : base::format(", {} virtual stages", schedule.virtual_stages),
      base::number_text(simulation.makespan), 100 * simulation.bubble_fraction);
  for (int stage = 0; stage < schedule.stages; ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    text += base::format("stage {:>{}} {}▏ live {:>{}}\n", stage, stage_width,
                         stage_line(simulation.timeline[at], columns_per_unit, simulation.makespan),
                         simulation.peak_live_total[at], live_width);
  }
  return text + legend(schedule) + "\n";
}

}  // namespace trireme::layout
