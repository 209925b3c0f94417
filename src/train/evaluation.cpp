// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation.hpp"

#include "trireme/inference/evaluate.hpp"

#include "train/clock.hpp"

#include <limits>
#include <utility>

namespace trireme::train {

using telemetry::SpanKind;

Evaluation::Evaluation(const config::Options& keys, std::unique_ptr<data::TokenDataset> data,
                       std::unique_ptr<inference::Sampler> sampler, engine::Engine& engine,
                       Report& report)
    : keys_(keys),
      data_(std::move(data)),
      sampler_(std::move(sampler)),
      engine_(engine),
      report_(report) {}

bool Evaluation::is_due(std::int64_t step) const {
  return is_wanted() && (step % keys_.train.eval_every == 0 || step == keys_.train.steps);
}

Evaluation::Outcome Evaluation::run(Progress& progress, const Between& between) {
  const telemetry::SpanRange range(SpanKind::evaluation);
  const auto begin = Clock::now();
  // 0 means all held-out data.
  const auto batches = keys_.train.eval_batches;
  auto batch_begin = begin;
  const auto total = inference::evaluate_while(
      *data_, engine_, batches == 0 ? std::numeric_limits<std::int64_t>::max() : batches,
      [&] { return between(seconds_since(std::exchange(batch_begin, Clock::now()))); });
  if (!total) return {};
  progress.evaluation_is_due = false;
  const bool is_among_best = progress.evaluated(total->loss, keys_.checkpoint.keep_best);
  report_.evaluated(progress.step, *total,
                    span_seconds(begin, SpanKind::evaluation, {}, range.serial()));
  return {true, is_among_best};
}

std::optional<double> Evaluation::take_samples(std::int64_t step) {
  if (!sampler_) return std::nullopt;
  const telemetry::SpanRange range(SpanKind::evaluation);
  const auto begin = Clock::now();
  const auto answers = sampler_->run();
  const double seconds = span_seconds(begin, SpanKind::evaluation, {}, range.serial());
  report_.sampled({step, sampler_->task(), answers, seconds});
  return seconds;
}

}  // namespace trireme::train
