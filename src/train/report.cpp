// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/report.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/inference/evaluate.hpp"
#include "trireme/telemetry/step_fields.hpp"

#include "train/lines/step_lines.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::train {

using base::Json;

Report::Report(const Settings& settings) : settings_(settings) {
  if (!settings_.speaks) return;
  const auto path = settings_.directory / "metrics.jsonl";
  restart_ = telemetry::start_count(path);
  metrics_ = base::value_or_throw(telemetry::MetricsFile::open(path));
  const std::chrono::duration<double> interval(settings_.log_interval);
  lines_ = std::make_unique<StepLines>(StepLines::Settings{
      .steps = settings_.steps,
      .log_every = settings_.log_every,
      .interval = std::chrono::duration_cast<std::chrono::milliseconds>(interval)});
}

Report::~Report() = default;

void Report::append(Json line) {
  line["run"] = settings_.run;
  line["restart"] = restart_;
  line["time"] = base::utc_text();
  TRIREME_EXPECT(metrics_.has_value(), "only a report that speaks has a file");
  try {
    if (lost_lines_ > 0) {
      metrics_->append(Json{{"kind", "event"},
                            {"event", "lines lost"},
                            {"lines", lost_lines_},
                            {"run", settings_.run},
                            {"restart", restart_},
                            {"time", base::utc_text()}});
      base::log::warning("train", "there is room for metrics again; {} lines are missing before",
                         lost_lines_);
      lost_lines_ = 0;
    }
    metrics_->append(line);
  } catch (const base::Error& error) {
    if (lost_lines_++ > 0) return;
    base::log::warning("train",
                       "{} (training goes on, but its steps are not written down); make room",
                       error.what());
  }
}

void Report::stopped(std::int64_t step, std::int64_t steps) {
  if (!settings_.speaks) return;
  append({{"kind", "event"}, {"event", "stop"}, {"step", step}, {"steps", steps}});
}

void Report::started(const StartRecord& record) {
  if (!settings_.speaks) return;
  const auto tokens = record.sequences_per_step * record.sequence_length;
  base::log::info("train", "{}, {} parameters; {} tokens a step ({} sequences of {}) of {}",
                  record.model, base::count_text(static_cast<double>(record.parameters)), tokens,
                  record.sequences_per_step, record.sequence_length, record.data);
  base::log::info("train", "data: {}", record.exposure);
  const auto where = base::format("run {} in '{}'", settings_.run, settings_.directory.string());
  if (record.first_step > settings_.steps) {
    base::log::info("train", "{} is at step {}", where, record.first_step - 1);
  } else {
    base::log::info("train", "{}: {}, up to step {}", where, record.beginning, settings_.steps);
  }
  Json line{{"kind", "event"},
            {"event", "start"},
            {"step", record.first_step},
            {"parameters", record.parameters},
            {"tokens_per_step", tokens},
            {"peak_flops", settings_.peak_flops},
            {"peak_source", settings_.peak_source},
            {"tensor_bytes", record.traffic.tensor},
            {"context_bytes", record.traffic.context},
            {"message_bytes", record.traffic.messages},
            {"gradient_bytes", record.traffic.gradients},
            {"stage_layers", record.stage_layers}};
  if (!record.job.empty()) line["job"] = record.job;
  if (const auto& predicted = settings_.predicted) {
    line["prediction"] = telemetry::to_json(*predicted);
    base::log::info("train", "predicted on {}: {}", predicted->machine,
                    telemetry::text(*predicted));
  }
  append(std::move(line));
}

void Report::finished(const FinishRecord& record) {
  if (!settings_.speaks) return;
  append({{"kind", "event"}, {"event", "done"}, {"step", record.steps}});
  if (record.steps_of_this_start == 0) {
    base::log::info("train",
                    "nothing to do: all {} steps were done before; to go on, set train.steps above "
                    "that (it is {})",
                    record.steps, settings_.steps);
    return;
  }
  if (settings_.predicted && measured_.count() > 0) {
    base::log::info("train", "measured: {}; predicted on {}: {}", telemetry::text(measured_.mean()),
                    settings_.predicted->machine, telemetry::text(*settings_.predicted));
  }
  const auto run = base::shell_word(settings_.directory.string());
  const auto held_out =
      held_out_loss_ ? ", held-out loss " + base::fixed_text(*held_out_loss_, 4) : std::string{};
  base::log::info("train",
                  "done: {} steps ({} in this start, {}), {} tokens{}; next: trireme generate "
                  "--weights {} --prompt TEXT, or trireme eval --weights {}",
                  record.steps, record.steps_of_this_start, base::duration_text(record.seconds),
                  base::count_text(static_cast<double>(record.tokens)), held_out, run, run);
}

void Report::started_up(std::int64_t step, const std::vector<runtime::StartUp::Phase>& phases) {
  if (!settings_.speaks) return;
  Json seconds;
  for (const auto& phase : phases) seconds[phase.name] = phase.seconds;
  append({{"kind", "event"}, {"event", "first step"}, {"step", step}, {"seconds", seconds}});
  base::log::info("train", "first step after {}", runtime::text(phases));
}

void Report::step(StepRecord record) {
  if (!settings_.speaks) return;
  record.tokens_per_second = static_cast<double>(record.step_tokens) / record.seconds();
  const double flops = settings_.flops_per_token * record.tokens_per_second;
  if (settings_.peak_may_be_beaten && flops > settings_.peak_flops) {
    settings_.peak_flops = flops;
    // Limit: a machine whose GEMMs are slower than its steps must not be measured again and again.
    constexpr int most_measurements = 3;
    if (peaks_beaten_ < most_measurements) peak_is_beaten_ = true;
  }
  record.mfu = flops / settings_.peak_flops;
  if (settings_.predicted) record.predicted_ms = settings_.predicted->step_ms;
  measured_.take(record);
  append(telemetry::to_json(record, record.others()));
  lines_->took(record, record.tokens_per_second, record.mfu);
}

bool Report::take_beaten_peak() {
  if (!peak_is_beaten_) return false;
  peak_is_beaten_ = false;
  ++peaks_beaten_;
  return true;
}

double Report::raise_peak(std::int64_t step, double flops) {
  settings_.peak_flops = std::max(settings_.peak_flops, flops);
  if (!settings_.speaks) return settings_.peak_flops;
  append(
      {{"kind", "event"}, {"event", "peak"}, {"step", step}, {"peak_flops", settings_.peak_flops}});
  if (peaks_beaten_ <= 1) {
    base::log::info("train",
                    "step {} was faster than the peak that was measured (something else may have "
                    "used the machine then); MFU divides by {:.3f} TFLOP/s from now on",
                    step, settings_.peak_flops / 1e12);
  }
  return settings_.peak_flops;
}

void Report::skipped(const StepRecord& record, std::int64_t in_a_row) {
  if (!settings_.speaks) return;
  // JSON has no numbers that are not finite: they are written as strings.
  append({{"kind", "event"},
          {"event", "skipped"},
          {"step", record.step},
          {"loss", base::number_text(record.loss)},
          {"grad_norm", base::number_text(record.grad_norm)},
          {"in_a_row", in_a_row},
          {"tokens", static_cast<std::uint64_t>(record.tokens)}});
  base::log::warning("train",
                     "step {} is skipped: loss {} and gradient norm {} are not both finite; "
                     "parameters and moments stay as they are ({} in a row)",
                     record.step, base::number_text(record.loss),
                     base::number_text(record.grad_norm), in_a_row);
}

void Report::evaluated(std::int64_t step, const inference::HeldOutLoss& found, double seconds) {
  if (!settings_.speaks) return;
  const double loss = found.loss;
  held_out_loss_ = loss;
  append({{"kind", "eval"},
          {"step", step},
          {"loss", loss},
          {"perplexity", std::exp(loss)},
          {"tokens", found.tokens},
          {"sequences", found.sequences},
          {"all_sequences", found.all_sequences},
          {"seconds", seconds}});
  // `trireme eval` takes all: it says another loss.
  const auto part =
      found.sequences < found.all_sequences
          ? base::format(" of {} of {} sequences", found.sequences, found.all_sequences)
          : "";
  lines_->between(StepLines::Between::evaluation, step,
                  base::format("held-out loss {}  perplexity {}  ({} tokens{}, {})",
                               base::fixed_text(loss, 4), base::fixed_text(std::exp(loss), 2),
                               found.tokens, part, base::duration_text(seconds)));
}

void Report::sampled(const SampleRecord& record) {
  if (!settings_.speaks) return;
  Json samples = Json::array();
  for (const auto& answer : record.answers) {
    samples.push_back({{"prompt", record.task.prompts[answer.prompt]},
                       {"text", answer.text},
                       {"prompt_tokens", answer.prompt_tokens},
                       {"tokens", answer.tokens.size()},
                       {"ending", inference::name(answer.ending)}});
  }
  append({{"kind", "sample"},
          {"step", record.step},
          {"seed", record.task.sampling.seed},
          {"temperature", record.task.sampling.temperature},
          {"seconds", record.seconds},
          {"samples", samples}});
}

void Report::went_back(std::int64_t step, std::int64_t to, const std::string& why) {
  if (!settings_.speaks) return;
  append({{"kind", "event"}, {"event", "went back"}, {"step", step}, {"to", to}, {"why", why}});
  base::log::warning("train",
                     "step {}: {}; the run goes back to its checkpoint of step {} (if they differ "
                     "again before the next one, it ends)",
                     step, why, to);
}

void Report::loaded(const LoadRecord& record) {
  if (!settings_.speaks) return;
  Json line{{"kind", "load"}, {"step", record.step}, {"seconds", record.seconds}};
  auto words = base::duration_text(record.seconds);
  if (record.read_bytes > 0) {
    const auto rate = static_cast<double>(record.read_bytes) / record.read_seconds;
    line.update({{"bytes", record.read_bytes},
                 {"bytes_per_second", rate},
                 {"read_ratio", record.read_ratio}});
    words += base::format(", {} at {}/s", base::bytes_text(record.read_bytes),
                          base::bytes_text(static_cast<std::uint64_t>(rate)));
  }
  append(std::move(line));
  if (record.step == 0) {
    base::log::info("train", "weights loaded in {}", words);
    return;
  }
  base::log::info("train", "continues after step {} (loaded in {})", record.step, words);
}

}  // namespace trireme::train
