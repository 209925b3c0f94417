// SPDX-License-Identifier: Apache-2.0
// Held-out loss, and samples of text after it.
#include "trireme/inference/evaluate.hpp"
#include "trireme/train/trainer.hpp"

#include "train/clock.hpp"
#include "train/requests.hpp"

#include <algorithm>
#include <limits>

namespace trireme::train {

using telemetry::SpanKind;

bool Trainer::evaluation_is_due() const {
  const auto every = keys_.train.eval_every;
  if (!validation_data_ || every == 0) return false;
  return progress_.step % every == 0 || progress_.step == keys_.train.steps;
}

void Trainer::evaluate() {
  if (take_held_out_loss()) take_samples();
}

bool Trainer::take_held_out_loss() {
  const telemetry::SpanRange range(SpanKind::evaluation);
  const auto begin = Clock::now();
  // 0 means all held-out data.
  const auto batches = keys_.train.eval_batches;
  auto batch_begin = begin;
  const auto total = inference::evaluate_while(
      *validation_data_, *engine_,
      batches == 0 ? std::numeric_limits<std::int64_t>::max() : batches, [&] {
        longest_batch_seconds_ = std::max(longest_batch_seconds_, seconds_since(batch_begin));
        batch_begin = Clock::now();
        // Nothing is wished here: wishes are handled between steps only, and answers would be lost.
        requests_->ask(*cluster_.world, lead_seconds(), {}, busy());
        return !requests_->answer().stop;
      });
  if (!total) return false;
  progress_.evaluation_is_due = false;
  is_among_best_ = progress_.evaluated(total->loss, keys_.checkpoint.keep_best);
  report_->evaluated(progress_.step, *total,
                     span_seconds(begin, SpanKind::evaluation, {}, range.serial()));
  return true;
}

void Trainer::take_samples() {
  if (!sampler_) return;
  const telemetry::SpanRange range(SpanKind::evaluation);
  const auto begin = Clock::now();
  const auto answers = sampler_->run();
  const double seconds = span_seconds(begin, SpanKind::evaluation, {}, range.serial());
  // Nobody is asked meanwhile: the time before the limit must have room for it.
  longest_batch_seconds_ = std::max(longest_batch_seconds_, seconds);
  report_->sampled({progress_.step, sampler_->task(), answers, seconds});
}

}  // namespace trireme::train
