// SPDX-License-Identifier: Apache-2.0
#include "moment.hpp"

#include "trireme/base/format.hpp"
#include "trireme/report/listing.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace trireme::report {
namespace {

using base::format;
using telemetry::RunRecord;
using telemetry::StepLine;

constexpr std::size_t trend_losses = 40;

/// The last steps of the newest start, with the saves and evaluations between them.
RunRecord recent_of(const RunRecord& record, std::size_t most_steps) {
  RunRecord recent;
  const auto& steps = record.steps;
  auto first = steps.end();
  while (first != steps.begin() && static_cast<std::size_t>(steps.end() - first) < most_steps &&
         (first - 1)->restart == steps.back().restart) {
    --first;
  }
  recent.steps.assign(first, steps.end());
  if (recent.steps.empty()) return recent;
  const auto begin = recent.steps.front().step;
  for (const auto& save : record.saves) {
    if (save.step >= begin && !save.is_left) recent.saves.push_back(save);
  }
  for (const auto& each : record.evaluations) {
    if (each.step >= begin) recent.evaluations.push_back(each);
  }
  return recent;
}

double mean_of(const std::vector<StepLine>& steps, double StepLine::*number) {
  double sum = 0;
  double count = 0;
  for (const auto& step : steps) {
    if (!std::isfinite(step.*number)) continue;
    sum += step.*number;
    ++count;
  }
  return count > 0 ? sum / count : telemetry::absent;
}

/// By the clock, if the lines have times; else by the steps alone.
double seconds_between(const std::vector<StepLine>& steps) {
  const auto elapsed_ms = steps.back().elapsed_ms - steps.front().elapsed_ms;
  const auto count = steps.back().step - steps.front().step;
  if (count > 0 && elapsed_ms > 0 && steps.front().time_ms > 0) {
    return static_cast<double>(elapsed_ms) / 1e3 / static_cast<double>(count);
  }
  const double mean_ms = mean_of(steps, &StepLine::step_ms);
  return std::isfinite(mean_ms) ? mean_ms / 1e3 : 0;
}

PartTimes mean_parts(const RunRecord& recent) {
  PartTimes mean{};
  const auto all = part_times(recent);
  for (const auto& times : all) {
    for (std::size_t part = 0; part < part_count; ++part) {
      mean[part] += times[part] / static_cast<double>(all.size());
    }
  }
  return mean;
}

double minutes_of(const RunView& view, std::string_view key) {
  const auto text = view.value(key);
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} && std::isfinite(number) ? number : 0;
}

/// Minutes between saves by the clock: where they are auto, those that the start has chosen last.
double minutes_between_saves(const RunView& view, const RunRecord& record) {
  constexpr const char* key = "checkpoint.every_minutes";
  if (view.value(key) != "auto") return minutes_of(view, key);
  const auto& events = record.events;
  const auto found = std::find_if(events.rbegin(), events.rend(),
                                  [](const auto& event) { return event.name == "save interval"; });
  if (found == events.rend()) return 0;
  const double minutes = telemetry::number_of(found->line, "minutes");
  return std::isfinite(minutes) ? minutes : 0;
}

std::int64_t milliseconds(double seconds) {
  constexpr double most = 1e12;
  return static_cast<std::int64_t>(std::min(seconds, most) * 1e3);
}

}  // namespace

Moment moment_of(const RunView& view, const RunRecord& record, Phase phase) {
  Moment moment;
  moment.planned_steps = view.number("train.steps", 0);
  moment.step = record.step;
  if (record.steps.empty() || phase == Phase::is_starting) return moment;
  const auto recent = recent_of(record, Moment::recent_steps);
  for (const auto& step : recent.steps) moment.rates.push_back(step.tokens_per_second);
  const auto losses = std::min(recent.steps.size(), trend_losses);
  for (auto at = recent.steps.end() - static_cast<std::ptrdiff_t>(losses); at != recent.steps.end();
       ++at) {
    moment.losses.push_back(at->loss);
  }
  const auto last = recent_of(record, Moment::mean_steps);
  moment.tokens_per_second = mean_of(last.steps, &StepLine::tokens_per_second);
  moment.mfu = mean_of(last.steps, &StepLine::mfu);
  moment.step_seconds = seconds_between(last.steps);
  const auto left = std::max<std::int64_t>(moment.planned_steps - moment.step, 0);
  moment.seconds_left = static_cast<double>(left) * moment.step_seconds;
  moment.parts = mean_parts(last);
  moment.stage_waits = stage_waits(last);
  return moment;
}

std::string next_save_text(const RunView& view, const RunRecord& record, const Moment& moment) {
  const auto every = view.number("checkpoint.every_steps", 0);
  const auto end = moment.planned_steps;
  if (moment.step == 0 || end == 0 || moment.step >= end || moment.step_seconds <= 0) return {};
  const auto due = every > 0 ? std::min(end, (moment.step / every + 1) * every) : end;
  const auto steps = due - moment.step;
  const double seconds = static_cast<double>(steps) * moment.step_seconds;
  // checkpoint.every_minutes counts from the last save, the first time from the start.
  const double minutes = minutes_between_saves(view, record);
  const auto* const save = record.last_save();
  const bool has_saved = save != nullptr && save->time_ms > 0 && save->restart == record.restart;
  if (minutes > 0 && has_saved) {
    const auto since_ms = std::max<std::int64_t>(record.last_time_ms - save->time_ms, 0);
    const double since = static_cast<double>(since_ms) / 1e3;
    const double left = std::max(0.0, minutes * 60 - since);
    if (left < seconds) {
      return format("in about {} (checkpoint.every_minutes)", age_text(milliseconds(left)));
    }
  }
  return format("step {} (in {} steps, about {})", due, steps, age_text(milliseconds(seconds)));
}

}  // namespace trireme::report
