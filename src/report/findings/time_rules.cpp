// SPDX-License-Identifier: Apache-2.0
// Findings on where the time of a step goes.
#include "trireme/base/format.hpp"

#include "report/findings/rules.hpp"
#include "report/run_schedule.hpp"
#include "report/steady.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::report::findings {
namespace {

using base::format;
using telemetry::StepLine;

// Thresholds, as docs/reports.md has them.
constexpr double much_reduction = 0.15;
constexpr double much_tensor = 0.25;
constexpr double idle_beyond_schedule = 0.10;
constexpr double idle_schedule = 0.20;
constexpr double stage_difference = 0.10;
constexpr double much_data = 0.05;
constexpr double much_saving = 0.05;
constexpr double much_evaluation = 0.25;
constexpr std::int64_t small_micro_batch = 512;  // tokens
constexpr std::int64_t many_micro_batches = 4;
constexpr double low_mfu = 0.50;
constexpr double much_hindered = 0.50;
constexpr double slower = 0.80;
constexpr double uneven = 3.0;

/// ": 1.20 GiB a step at 0.90 GB/s".
std::string reduction_text(const Facts& facts) {
  const double bytes = facts.step.gradient_bytes;
  const double busy = mean_steady(facts.start, &StepLine::reduction_ms);
  if (busy > 0) return traffic_text(bytes, busy);
  const double exposed = of(facts.times, Part::gradients);
  if (!(bytes > 0) || !(exposed > 0)) return {};
  // The time that computation hid is not known: the link was no faster than this.
  return format(": {} a step at {} or less", base::bytes_text(static_cast<std::uint64_t>(bytes)),
                rate_text(bytes, exposed));
}

/// Share of a stage's work that is one of its layers; 0 if the configuration does not tell.
double layer_share(const RunView& run) {
  const auto layers = static_cast<double>(run.number("model.num_hidden_layers", 0));
  return layers > 0 ? static_cast<double>(run.number("parallel.pipeline", 1)) / layers : 0;
}

/// ", 65536 tokens of them, 1.2 million a second".
std::string tokens_text(const Facts& facts) {
  const double tokens = facts.step.tokens;
  const double ms = of(facts.times, Part::data);
  if (!(tokens > 0) || !(ms > 0)) return {};
  return format(", {:.0f} tokens of them, {} a second", tokens,
                base::count_text(tokens / ms * 1e3));
}

/// ", 1.20 GiB each in 3400 ms (0.35 GB/s)": of the median save.
std::string saves_text(const std::vector<telemetry::SaveLine>& saves) {
  std::vector<double> bytes;
  std::vector<double> times;
  for (const auto& save : saves) {
    bytes.push_back(save.bytes);
    // A save that training waits for is written while it stands still.
    times.push_back(std::fmax(save.write_ms, save.stall_ms));
  }
  const double size = median(std::move(bytes));
  const double ms = median(std::move(times));
  if (!(size > 0) || !(ms > 0)) return {};
  return format(", {} each in {} ms ({})", base::bytes_text(static_cast<std::uint64_t>(size)),
                three_digits(ms), rate_text(size, ms));
}

}  // namespace

Verdict gradients(const Facts& facts) {
  if (facts.share(Part::gradients) < much_reduction) return {};
  return format(
      "{} is exposed {} of gradients over {} data-parallel ranks{}: give each reduction more work "
      "to hide behind (a larger train.global_batch or train.micro_batch), let it begin earlier (a "
      "smaller parallel.bucket_bytes), or {}",
      facts.share_text(Part::gradients),
      facts.run.number("parallel.zero_level", 0) > 0 ? "reduce-scatter" : "all-reduce",
      facts.run.value("parallel.data"), reduction_text(facts),
      is_within_nodes(facts.run, layout::Axis::data)
          ? "give each rank cores of its own (they are on one node)"
          : "see what the link gives (trireme bench comm)");
}

Verdict tensor(const Facts& facts) {
  if (facts.share(Part::tensor) < much_tensor) return {};
  return format(
      "{} is communication of {} tensor-parallel ranks, with their waits for one another, and "
      "nothing hides it{}: {}, or lower parallel.tensor",
      facts.share_text(Part::tensor), facts.run.value("parallel.tensor"),
      traffic_text(facts.step.tensor_bytes, of(facts.times, Part::tensor)),
      is_within_nodes(facts.run, layout::Axis::tensor)
          ? "give each rank cores that no other program uses (they are on one node)"
          : "keep them within a node");
}

/// Places of the run's positions; as many on each stage as its layers tell.
layout::Placement placement_of(const Facts& facts, std::size_t stages) {
  const auto kind = layout::schedule_kind(facts.run.value("parallel.schedule"));
  return {static_cast<int>(stages), static_cast<int>(facts.step.stage_layers.size() / stages),
          kind.ok() ? layout::placement_kind(*kind) : layout::PlacementKind::round_robin};
}

Verdict stages(const Facts& facts) {
  const auto waits = stage_waits(facts.start);
  if (waits.empty() || facts.step_ms == 0) return {};
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
  const double difference = *most - *least;
  const double share = layer_share(facts.run);
  // A layer that is larger than the difference would only turn it round.
  if (difference < std::max(stage_difference, share)) return {};
  const auto idlest = static_cast<std::size_t>(most - waits.begin());
  const auto busiest = static_cast<std::size_t>(least - waits.begin());
  return format(
      "stage {} waits for others {:.0f} % of a step, stage {} only {:.0f} %: stage {} has more "
      "work than the others, {}",
      idlest, 100 * *most, busiest, 100 * *least, busiest,
      move_text(facts.step, busiest, idlest, difference, share, placement_of(facts, waits.size())));
}

namespace {

/// Keys that make the schedule's own bubble smaller, beside more micro-batches.
const char* smaller_bubble(layout::ScheduleKind kind) {
  if (kind == layout::ScheduleKind::zero_bubble_v) return "";
  return layout::splits_backward(kind) ? " or parallel.schedule = zb-v"
                                       : " or parallel.virtual_stages";
}

}  // namespace

Verdict bubble(const Facts& facts) {
  const auto schedule = schedule_of(facts.run);
  if (!schedule || stages(facts)) return {};
  const double own = schedule->simulation.bubble_fraction;
  double waited = facts.share(Part::bubble);
  // A slow link keeps every stage waiting, more work of one only the others.
  for (const double wait : stage_waits(facts.start)) waited = std::min(waited, wait);
  const double most = schedule->largest_bubble_fraction;
  if (waited >= most + idle_beyond_schedule) {
    const double beyond = of(facts.times, Part::bubble) - most * facts.step_ms;
    return format(
        "{} is waiting for messages of other stages, though the schedule itself is idle only "
        "{:.0f} %{}: {}ranks share cores",
        facts.share_text(Part::bubble), 100 * most, traffic_text(facts.step.message_bytes, beyond),
        is_within_nodes(facts.run, layout::Axis::pipeline)
            ? ""
            : "the link between stages is slow (trireme bench comm), or ");
  }
  if (own < idle_schedule || waited < idle_schedule) return {};
  return format(
      "{} is waiting for other stages, and {:.0f} % is the schedule's own bubble of {} "
      "micro-batches over {} stages: more micro-batches (train.global_batch, a smaller "
      "train.micro_batch){} make it smaller",
      facts.share_text(Part::bubble), 100 * own, schedule->schedule.micro_batches,
      schedule->schedule.stages, smaller_bubble(schedule->schedule.kind));
}

Verdict data(const Facts& facts) {
  if (facts.share(Part::data) < much_data) return {};
  return format(
      "{} is reading samples{}: the storage of data.train is slow, or its pages do not fit in "
      "memory; put the token files on faster storage",
      facts.share_text(Part::data), tokens_text(facts));
}

Verdict saves(const Facts& facts) {
  // A run's only save, at its end, cannot come less often.
  if (facts.share(Part::save) < much_saving || facts.start.saves.size() < 2) return {};
  return format(
      "{} is training that stands still for checkpoints{}: save less often "
      "(checkpoint.every_minutes, checkpoint.every_steps), beside training "
      "(checkpoint.asynchronous), or first on the nodes (checkpoint.local_directory)",
      facts.share_text(Part::save), saves_text(facts.start.saves));
}

Verdict evaluations(const Facts& facts) {
  if (facts.share(Part::evaluation) < much_evaluation) return {};
  return format("{} is evaluation: raise train.eval_every, or lower train.eval_batches",
                facts.share_text(Part::evaluation));
}

Verdict micro_batches(const Facts& facts) {
  const auto tokens =
      facts.run.number("train.micro_batch", 0) * facts.run.number("train.sequence_length", 0);
  const auto count = micro_batches_of(facts.run);
  const bool small =
      facts.step_ms > 0 && tokens > 0 && tokens < small_micro_batch && count >= many_micro_batches;
  const double mfu = median(steady_numbers(facts.start, &StepLine::mfu));
  if (!small || !(mfu < low_mfu)) return {};
  return format(
      "a micro-batch has only {} tokens, {} of them make a step, and MFU is {:.0f} %: a larger "
      "train.micro_batch gives larger products at the same train.global_batch",
      tokens, count, 100 * mfu);
}

Verdict slow_down(const Facts& facts) {
  const auto speeds = steady_numbers(facts.start, &StepLine::tokens_per_second);
  if (speeds.size() < least_steps) return {};
  const auto quarter = speeds.size() / 4;
  double fastest = 0;
  double last = 0;
  for (std::size_t part = 0; part < 4; ++part) {
    const auto begin = speeds.begin() + static_cast<std::ptrdiff_t>(part * quarter);
    last = median({begin, begin + static_cast<std::ptrdiff_t>(quarter)});
    fastest = std::fmax(fastest, last);
  }
  if (!(last < slower * fastest)) return {};
  return format(
      "the run has become slower: {:.0f} tok/s in the last quarter of its steps, {:.0f} "
      "in the fastest (medians): another program on its nodes, or {} that get too hot",
      last, fastest, engines_of(facts.run));
}

Verdict uneven_steps(const Facts& facts) {
  auto times = steady_numbers(facts.start, &StepLine::step_ms);
  std::erase_if(times, [](double each) { return !std::isfinite(each); });
  if (times.size() < least_steps) return {};
  const double middle = median(times);
  const auto place = times.begin() + static_cast<std::ptrdiff_t>(times.size() * 95 / 100);
  std::nth_element(times.begin(), place, times.end());
  if (*place < uneven * middle) return {};
  return format(
      "one step in twenty takes over {}, the median is {}: ranks share their cores with other "
      "programs, or the storage or network has pauses",
      base::duration_text(*place / 1e3), base::duration_text(middle / 1e3));
}

Verdict processors(const Facts& facts) {
  auto text = hindered_text(facts.start.processors, much_hindered);
  return text.empty() ? Verdict{} : Verdict(std::move(text));
}

}  // namespace trireme::report::findings
