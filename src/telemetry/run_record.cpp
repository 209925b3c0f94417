// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/run_record.hpp"

#include "trireme/base/utc.hpp"
#include "trireme/telemetry/step_fields.hpp"

#include <algorithm>
#include <optional>

namespace trireme::telemetry {
namespace {

using base::Json;

constexpr std::int64_t largest_number = std::int64_t{1} << 53;

/// Numbers that no run counts to are as absent.
std::optional<std::int64_t> whole_number(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  const auto value = found->get<std::int64_t>();
  return value >= 0 && value <= largest_number ? std::optional(value) : std::nullopt;
}

/// Limited in number: memory is kept for each step.
std::vector<float> numbers(const Json& line, const char* key) {
  constexpr std::size_t most_numbers = 1024;
  std::vector<float> values;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_array() || found->size() > most_numbers) return values;
  for (const auto& each : *found) {
    if (!each.is_number()) return {};
    values.push_back(static_cast<float>(std::clamp(each.get<double>(), 0.0, 1e9)));
  }
  return values;
}

std::string text(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::int64_t time_of(const Json& line) {
  const auto found = line.find("time");
  if (found == line.end() || !found->is_string()) return 0;
  return base::utc_milliseconds(found->get_ref<const std::string&>()).value_or(0);
}

template <typename Lines>
std::size_t erase_from(Lines& lines, std::int64_t step) {
  const auto first =
      std::lower_bound(lines.begin(), lines.end(), step,
                       [](const auto& line, auto wanted) { return line.step < wanted; });
  const auto count = static_cast<std::size_t>(lines.end() - first);
  lines.erase(first, lines.end());
  return count;
}

}  // namespace

double number_of(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : absent;
}

bool EventLine::is_measurement() const {
  return name == "first step" || name == "arenas" || name == "memory" || name == "save interval";
}

void RunRecord::take(std::string_view text_line) {
  if (text_line.empty()) return;
  const auto parsed = base::parse_json(text_line, "metrics.jsonl");
  if (!parsed.ok() || !parsed->is_object()) {
    ++passed_over;
    return;
  }
  const auto& line = *parsed;
  const auto kind = text(line, "kind");
  if (kind.empty()) {
    ++passed_over;
    return;
  }
  const auto at_step = whole_number(line, "step").value_or(0);
  const auto number_of_start = whole_number(line, "restart");
  // Smaller: a process that has lost the run writes a last line.
  if (number_of_start && *number_of_start > restart) begin_start(*number_of_start);
  const auto passed_ms = take_time(line);
  if (kind == "train") {
    take_step(line, passed_ms);
  } else if (kind == "eval") {
    erase_from(evaluations, at_step);
    evaluations.push_back({at_step, number_of(line, "loss"), number_of(line, "tokens"),
                           number_of(line, "seconds"), number_of_start.value_or(0), time_of(line),
                           absent});
    step = std::max(step, at_step);
  } else if (kind == "sample") {
    take_samples(line);
  } else if (kind == "load") {
    if (loads.size() < most_events) {
      loads.push_back(
          {at_step, number_of_start.value_or(0), time_of(line), number_of(line, "seconds")});
    }
  } else if (kind == "save") {
    take_save(line);
  } else if (kind == "processors") {
    take_processors(line);
  } else if (kind == "event") {
    take_event(line);
  }
  // Other kinds are those of a newer version.
  if (run.empty()) run = text(line, "run");
}

std::int64_t RunRecord::take_time(const Json& line) {
  const auto time = time_of(line);
  if (time == 0) return 0;
  const auto passed_ms = last_time_ms == 0 ? 0 : time - last_time_ms;
  elapsed_ms_ += std::max<std::int64_t>(passed_ms, 0);
  last_time_ms = time;
  return passed_ms;
}

void RunRecord::begin_start(std::int64_t number) {
  restart = number;
  steps_of_start = 0;
  end = End::none;
}

void RunRecord::take_save(const Json& line) {
  SaveLine save;
  save.step = whole_number(line, "step").value_or(0);
  save.restart = whole_number(line, "restart").value_or(0);
  save.time_ms = time_of(line);
  save.bytes = number_of(line, "bytes");
  save.stall_ms = number_of(line, "stall_ms");
  save.write_ms = number_of(line, "write_ms");
  save.on_nodes = text(line, "tier") == "nodes";
  step = std::max(step, save.step);
  saves.push_back(save);
}

void RunRecord::take_processors(const Json& line) {
  if (processors.size() == most_processors) {
    processors.erase(processors.begin(), processors.begin() + most_processors / 2);
  }
  processors.push_back({whole_number(line, "step").value_or(0),
                        whole_number(line, "restart").value_or(0), cores_use_from(line)});
}

const SaveLine* RunRecord::last_save() const {
  const auto found =
      std::find_if(saves.rbegin(), saves.rend(), [](const auto& save) { return !save.is_left; });
  return found == saves.rend() ? nullptr : &*found;
}

void RunRecord::take_step(const Json& line, std::int64_t passed_ms) {
  StepLine taken;
  taken.step = whole_number(line, "step").value_or(0);
  taken.restart = whole_number(line, "restart").value_or(0);
  taken.time_ms = time_of(line);
  for (const auto& field : step_fields()) {
    if (field.number != nullptr) taken.*field.number = number_of(line, field.name);
  }
  taken.stage_bubble_ms = numbers(line, "stage_bubble_ms");
  if (passed_ms < 0 && taken.step_ms > 0) {
    constexpr double most_ms = 1e12;
    elapsed_ms_ += static_cast<std::int64_t>(std::min(taken.step_ms, most_ms));
  }
  taken.elapsed_ms = elapsed_ms_;
  // Nothing is recorded of steps beyond the one at which the run stands.
  if (taken.step <= step) take_back(taken.step);
  step = taken.step;
  ++steps_of_start;
  end = End::none;
  steps.push_back(std::move(taken));
}

void RunRecord::take_event(const Json& line) {
  last_event = text(line, "event");
  const auto at_step = whole_number(line, "step");
  // True of an event of a process that has lost the run.
  const bool is_late = whole_number(line, "restart").value_or(restart) < restart;
  if (last_event == "start") {
    ++start_count;
    start_ms = time_of(line);
    begin_start(whole_number(line, "restart").value_or(restart));
    if (at_step) take_back(*at_step);
    if (at_step) step = std::max<std::int64_t>(*at_step - 1, 0);
  } else if (last_event == "went back") {
    const auto to = whole_number(line, "to");
    if (to) take_back(*to + 1);
    step = to.value_or(step);
  } else if (last_event == "skipped") {
    if (at_step && *at_step <= step) take_back(*at_step);
    step = at_step.value_or(step);
    ++steps_of_start;
  } else if (!is_late && (last_event == "done" || last_event == "stop")) {
    end = last_event == "done" ? End::done : End::stopped;
    // The line that says where this start began may be lost.
    if (at_step && *at_step < step) take_back(*at_step + 1);
    step = at_step.value_or(step);
  }
  if (events.size() == most_events) {
    ++dropped_events;
    if (last_event != "start") return;
    events.pop_back();
  }
  events.push_back({at_step.value_or(0), whole_number(line, "restart").value_or(0), time_of(line),
                    last_event, line});
}

void RunRecord::take_samples(const Json& line) {
  SampleLine taken;
  taken.step = whole_number(line, "step").value_or(0);
  step = std::max(step, taken.step);
  taken.temperature = number_of(line, "temperature");
  const auto found = line.find("samples");
  if (found == line.end() || !found->is_array()) return;
  for (const auto& each : *found) {
    if (!each.is_object()) continue;
    taken.samples.push_back(
        {text(each, "prompt"), text(each, "text"), text(each, "ending") == "length"});
  }
  if (!evaluations.empty() && evaluations.back().step == taken.step) {
    evaluations.back().sample_seconds = number_of(line, "seconds");
  }
  erase_from(samples, taken.step);
  samples.push_back(std::move(taken));
  if (samples.size() <= most_samples) return;
  // Every second one goes, counted from the newest: the others lie evenly over the run.
  std::vector<SampleLine> kept;
  for (std::size_t index = (samples.size() + 1) % 2; index < samples.size(); index += 2) {
    kept.push_back(std::move(samples[index]));
  }
  samples = std::move(kept);
}

void RunRecord::forget_steps(std::int64_t last) {
  const auto most = steps.size() - std::min(steps.size(), kept_steps);
  const auto kept = std::find_if(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(most),
                                 [last](const StepLine& line) { return line.step > last; });
  steps.erase(steps.begin(), kept);
}

void RunRecord::take_back(std::int64_t first) {
  repeated_steps += static_cast<std::int64_t>(erase_from(steps, first));
  erase_from(evaluations, first);
  erase_from(samples, first);
  for (auto& save : saves) save.is_left = save.is_left || save.step >= first;
}

}  // namespace trireme::telemetry
