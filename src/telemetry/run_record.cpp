// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/run_record.hpp"

#include "trireme/base/utc.hpp"

#include <algorithm>
#include <optional>

namespace trireme::telemetry {
namespace {

using base::Json;

constexpr std::int64_t largest_number = std::int64_t{1} << 53;

double number(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : absent;
}

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

bool EventLine::is_measurement() const {
  return name == "first step" || name == "arenas" || name == "memory";
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
  const auto step = whole_number(line, "step").value_or(0);
  const auto restart = whole_number(line, "restart").value_or(0);
  if (kind == "train") {
    take_step(line);
  } else if (kind == "eval") {
    erase_from(evaluations, step);
    evaluations.push_back({step, number(line, "loss"), number(line, "tokens"),
                           number(line, "seconds"), restart, time_of(line), absent});
  } else if (kind == "sample") {
    take_samples(line);
  } else if (kind == "load") {
    if (loads.size() < most_events) {
      loads.push_back({step, restart, time_of(line), number(line, "seconds")});
    }
  } else if (kind == "save") {
    saves.push_back({step, restart, time_of(line), number(line, "bytes"), number(line, "stall_ms"),
                     number(line, "write_ms")});
  } else if (kind == "event") {
    take_event(line);
  } else if (kind.empty()) {
    ++passed_over;
    return;
  }
  if (run.empty()) run = text(line, "run");
  if (const auto time = time_of(line); time != 0) last_time_ms = time;
}

void RunRecord::take_step(const Json& line) {
  StepLine step;
  step.step = whole_number(line, "step").value_or(0);
  step.restart = whole_number(line, "restart").value_or(0);
  step.time_ms = time_of(line);
  step.loss = number(line, "loss");
  step.grad_norm = number(line, "grad_norm");
  step.learning_rate = number(line, "learning_rate");
  step.tokens = number(line, "tokens");
  step.step_ms = number(line, "step_ms");
  step.tokens_per_second = number(line, "tokens_per_second");
  step.mfu = number(line, "mfu");
  step.exposed_comm_ms = number(line, "exposed_comm_ms");
  step.reduction_ms = number(line, "reduction_ms");
  step.tensor_comm_ms = number(line, "tensor_comm_ms");
  step.parameters_ms = number(line, "parameters_ms");
  step.bubble_ms = number(line, "bubble_ms");
  step.data_ms = number(line, "data_ms");
  step.optimizer_ms = number(line, "optimizer_ms");
  step.stage_bubble_ms = numbers(line, "stage_bubble_ms");
  go_back_to(step.step);
  steps.push_back(std::move(step));
}

void RunRecord::take_event(const Json& line) {
  last_event = text(line, "event");
  if (last_event == "start") {
    ++start_count;
    if (const auto first = whole_number(line, "step")) go_back_to(*first);
  } else if (last_event == "went back") {
    if (const auto to = whole_number(line, "to")) go_back_to(*to + 1);
  }
  if (events.size() == most_events) {
    ++dropped_events;
    return;
  }
  events.push_back({whole_number(line, "step").value_or(0),
                    whole_number(line, "restart").value_or(0), time_of(line), last_event, line});
}

void RunRecord::take_samples(const Json& line) {
  SampleLine taken;
  taken.step = whole_number(line, "step").value_or(0);
  taken.temperature = number(line, "temperature");
  const auto found = line.find("samples");
  if (found == line.end() || !found->is_array()) return;
  for (const auto& each : *found) {
    if (!each.is_object()) continue;
    taken.samples.push_back(
        {text(each, "prompt"), text(each, "text"), text(each, "ending") == "length"});
  }
  if (!evaluations.empty() && evaluations.back().step == taken.step) {
    evaluations.back().sample_seconds = number(line, "seconds");
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
  const auto end = std::find_if(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(most),
                                [last](const StepLine& line) { return line.step > last; });
  steps.erase(steps.begin(), end);
}

void RunRecord::go_back_to(std::int64_t step) {
  repeated_steps += static_cast<std::int64_t>(erase_from(steps, step));
  erase_from(evaluations, step);
  erase_from(samples, step);
}

}  // namespace trireme::telemetry
