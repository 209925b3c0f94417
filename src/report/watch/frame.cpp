// SPDX-License-Identifier: Apache-2.0
// The frame of `trireme watch`: a run at one moment.
#include "trireme/base/columns.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/report/listing.hpp"
#include "trireme/report/watch.hpp"

#include "moment.hpp"
#include "node_lines.hpp"
#include "report/figure_texts.hpp"
#include "report/time_parts.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report {
namespace {

using base::format;
using telemetry::StepLine;

constexpr std::size_t label_columns = 12;
constexpr std::size_t number_columns = 14;
constexpr std::size_t most_curve_columns = 80;

/// Lines of a frame that is being made.
class FrameMaker {
 public:
  FrameMaker(const RunView& view, const telemetry::RunRecord& record, Phase phase,
             const FrameSize& size, base::Glyphs glyphs)
      : view_(view),
        record_(record),
        phase_(phase),
        moment_(moment_of(view, record, phase)),
        size_(size),
        glyphs_(glyphs) {}

  void add_heading(State state, std::int64_t now_ms);
  void add_progress(State state);
  void add_curves();
  void add_time();
  void add_saves(State state);
  void add_nodes(const std::vector<NodeRanks>& nodes, double median_ms);
  void add_processors();
  void add_last_event();
  std::vector<FrameLine> lines() &&;

 private:
  void add(FrameLine line) { lines_.push_back(std::move(line)); }
  void add_labelled(const char* label, const std::string& text, Tone tone = Tone::plain);
  void add_curve(const char* label, const std::string& number, Tone tone,
                 const std::vector<double>& numbers);
  std::size_t curve_columns() const {
    const auto taken = label_columns + number_columns;
    return std::min(most_curve_columns, size_.columns - std::min(size_.columns, taken));
  }

  const RunView& view_;
  const telemetry::RunRecord& record_;
  Phase phase_;
  Moment moment_;
  FrameSize size_;
  base::Glyphs glyphs_;
  std::vector<FrameLine> lines_ = {};
};

Tone tone_of(State state) {
  switch (state) {
    case State::running:
    case State::finished:
      return Tone::good;
    case State::failed:
      return Tone::bad;
    case State::stopped:
    case State::unknown:
      break;
  }
  return Tone::warning;
}

/// Texts that are too wide go on below themselves.
void FrameMaker::add_labelled(const char* label, const std::string& text, Tone tone) {
  constexpr std::size_t least_columns = 20;
  const auto columns =
      std::max(least_columns, size_.columns - std::min(size_.columns, label_columns));
  for (const auto& line : base::wrapped(text, columns)) {
    add({{base::filled(label, label_columns), Tone::faint}, {line, tone}});
    label = "";
  }
}

void FrameMaker::add_curve(const char* label, const std::string& number, Tone tone,
                           const std::vector<double>& numbers) {
  add({{base::filled(label, label_columns), Tone::faint},
       {base::filled(number, number_columns), tone},
       {base::sparkline(numbers, curve_columns(), glyphs_), tone}});
}

void FrameMaker::add_heading(State state, std::int64_t now_ms) {
  FrameLine line{
      {base::printable(view_.name), Tone::strong}, {"  "}, {name(state), tone_of(state)}};
  const auto starts = record_.start_count;
  if (starts > 1) line.push_back({format("  start {}", starts), Tone::faint});
  if (record_.last_time_ms > 0) {
    const double silent = static_cast<double>(now_ms - record_.last_time_ms) / 1e3;
    // A run that goes on writes a line with each step.
    const bool is_late = state == State::running && moment_.step_seconds > 0 &&
                         silent > std::max(10.0, 10 * moment_.step_seconds);
    line.push_back({format("  last line {} ago", age_text(now_ms - record_.last_time_ms)),
                    is_late ? Tone::warning : Tone::faint});
  }
  add(std::move(line));
}

void FrameMaker::add_progress(State state) {
  if (moment_.step == 0) {
    add_labelled("step", state == State::running ? "none yet: the run is starting" : "none");
    return;
  }
  const auto planned = moment_.planned_steps;
  auto text = steps_text(moment_.step, planned);
  const double share = planned >= moment_.step
                           ? static_cast<double>(moment_.step) / static_cast<double>(planned)
                           : 1;
  if (planned >= moment_.step) text += format("  {:.0f} %", std::floor(share * 100));
  if (phase_ == Phase::is_starting) {
    text += "  none yet in this start: the run is starting";
  } else if (state == State::running && moment_.step_seconds > 0) {
    text += format("  left {}", base::duration_text(moment_.seconds_left));
  } else if (state != State::running && record_.steps_of_start == 0 && record_.start_count > 1) {
    text += format("  none of them in start {}", record_.start_count);
  }
  // Steps that are skipped, or lie before the record, have no line.
  const double epochs = record_.steps.empty() ? telemetry::absent : record_.steps.back().epochs;
  if (std::isfinite(epochs)) text += format("  {} epochs", base::factor_text(epochs));
  add_labelled("step", text, Tone::strong);
  if (planned == 0) return;
  const auto columns = std::min(size_.columns, label_columns + number_columns + curve_columns());
  add({{base::bar(share, columns, glyphs_), Tone::faint}});
}

void FrameMaker::add_curves() {
  if (record_.steps.empty()) return;
  const auto& last = record_.steps.back();
  std::vector<double> losses;
  losses.reserve(record_.steps.size());
  for (const auto& step : record_.steps) losses.push_back(step.loss);
  const auto trend = base::trend_of(moment_.losses);
  auto tone = trend == base::Trend::falls ? Tone::good : Tone::plain;
  if (trend == base::Trend::rises) tone = Tone::warning;
  if (!std::isfinite(last.loss)) tone = Tone::bad;
  add_curve("loss", base::fixed_text(last.loss, 4) + base::arrow_of(trend, glyphs_), tone, losses);
  if (!record_.evaluations.empty()) {
    std::vector<double> held_out;
    for (const auto& each : record_.evaluations) held_out.push_back(each.loss);
    add_curve("held-out", base::fixed_text(held_out.back(), 4), Tone::plain, held_out);
  }
  if (std::isfinite(moment_.tokens_per_second)) {
    add_curve("tok/s", format("{:.0f}", moment_.tokens_per_second), Tone::plain, moment_.rates);
  }
  if (std::isfinite(moment_.mfu)) add_labelled("MFU", format("{:.1f} %", moment_.mfu * 100));
}

void FrameMaker::add_time() {
  if (record_.steps.empty() || moment_.step_seconds <= 0) return;
  const double whole = sum_of(moment_.parts);
  auto text = format("{}:", base::duration_text(moment_.step_seconds));
  for (std::size_t index = 0; index < part_count; ++index) {
    const auto part = static_cast<Part>(index);
    const double share = whole > 0 ? of(moment_.parts, part) / whole : 0;
    // Less than half a percent is nothing that a person would act on.
    if (share < 0.005) continue;
    text +=
        format("{} {} {:.0f} %", text.ends_with(':') ? "" : ",", text_of(part).name, share * 100);
  }
  add_labelled("a step", text);
  if (moment_.stage_waits.size() < 2) return;
  const auto& waits = moment_.stage_waits;
  const auto slowest = std::min_element(waits.begin(), waits.end()) - waits.begin();
  std::vector<std::string> shares;
  for (const double wait : waits) shares.push_back(format("{:.0f} %", wait * 100));
  add_labelled("stages wait",
               format("{}; stage {} is the slowest", base::join(shares, ", "), slowest));
}

void FrameMaker::add_saves(State state) {
  if (const auto* const last = record_.last_save()) {
    const auto& save = *last;
    auto text = format("step {}{}", save.step, save.on_nodes ? " on the nodes" : "");
    if (std::isfinite(save.bytes)) {
      text += format(", {}", base::bytes_text(static_cast<std::uint64_t>(save.bytes)));
    }
    if (std::isfinite(save.stall_ms)) {
      text += format(", training stood still {}", base::duration_text(save.stall_ms / 1e3));
    }
    add_labelled("saved", text);
  }
  if (state != State::running) return;
  const auto next = next_save_text(view_, record_, moment_);
  if (!next.empty()) add_labelled("next save", next);
}

void FrameMaker::add_nodes(const std::vector<NodeRanks>& nodes, double median_ms) {
  const char* label = nodes.empty() ? "" : "nodes";
  for (const auto& [text, tone] : node_lines(view_, moment_.stage_waits, nodes, median_ms)) {
    add_labelled(label, text, tone);
    label = "";
  }
}

void FrameMaker::add_processors() {
  if (phase_ == Phase::is_starting || record_.processors.empty()) return;
  const auto& last = record_.processors.back();
  const auto hindrance = telemetry::hindrance_of(last.use);
  if (last.restart != record_.restart || hindrance == telemetry::Hindrance::none) return;
  add_labelled(
      "processors",
      format("{}: {}", telemetry::hindrance_text(last.use), telemetry::hindrance_remedy(hindrance)),
      Tone::warning);
}

void FrameMaker::add_last_event() {
  const auto found =
      std::find_if(record_.events.rbegin(), record_.events.rend(),
                   [](const telemetry::EventLine& each) { return !each.is_measurement(); });
  if (found == record_.events.rend()) return;
  const auto& event = *found;
  auto text = format("{} after step {}", base::printable(event.name), event.step);
  const auto why = event.line.find("why");
  if (why != event.line.end() && why->is_string()) {
    text += format(": {}", base::printable(why->get_ref<const std::string&>()));
  }
  const bool is_trouble = event.name == "not saved" || event.name == "went back" ||
                          event.name == "skipped" || event.name == "lines lost";
  add_labelled("last event", text, is_trouble ? Tone::warning : Tone::plain);
}

/// Cuts the end of a line that is too wide.
void cut(FrameLine& line, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const auto rest = columns - std::min(columns, width);
    width += base::width_of(line[at].text);
    if (width <= columns) continue;
    line[at].text = std::string(base::first_columns(line[at].text, rest));
    line.resize(at + 1);
    return;
  }
}

std::vector<FrameLine> FrameMaker::lines() && {
  if (size_.rows > 0 && lines_.size() > size_.rows) lines_.resize(size_.rows);
  for (auto& line : lines_) cut(line, size_.columns);
  return std::move(lines_);
}

}  // namespace

std::vector<FrameLine> WatchedRun::frame(FrameSize size, base::Glyphs glyphs,
                                         std::int64_t now_ms) const {
  const auto& record = reader_.record();
  const bool is_starting = is_silent_ || (state_ == State::running && record.steps_of_start == 0);
  FrameMaker maker(view_, record, is_starting ? Phase::is_starting : Phase::has_steps, size,
                   glyphs);
  maker.add_heading(state_, now_ms);
  maker.add_progress(state_);
  maker.add_curves();
  maker.add_time();
  maker.add_saves(state_);
  // Known until now are the nodes of the start before.
  if (!is_silent_) maker.add_nodes(nodes_, median_ms_);
  maker.add_processors();
  maker.add_last_event();
  return std::move(maker).lines();
}

std::string text_of(const std::vector<FrameLine>& frame) {
  std::string text;
  for (const auto& line : frame) {
    std::string one;
    for (const auto& span : line) one += span.text;
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace trireme::report
