// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/trainer.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/launch/validation.hpp"
#include "trireme/optim/optimizer.hpp"

#include "nonfinite_steps.hpp"
#include "train/clock.hpp"
#include "train/evaluation.hpp"
#include "train/observers.hpp"
#include "train/peak/kept_peak.hpp"
#include "train/peak/peak.hpp"
#include "train/profile.hpp"
#include "train/rank_times_recorder.hpp"
#include "train/requests.hpp"
#include "train/saving/auto_interval.hpp"
#include "train/saving/replica_check.hpp"
#include "train/saving/saver.hpp"

#include <algorithm>

namespace trireme::train {

using telemetry::SpanKind;

Trainer::~Trainer() = default;

void Trainer::comment_job(const base::Environment& environment) {
  if (is_first_rank()) observers_->comment_job(environment, keys_.run.job_comment);
}

void Trainer::step() {
  StepRecord record;
  record.step = ++progress_.step;
  const telemetry::SpanPlace place{.number = record.step};
  const telemetry::SpanRange range(SpanKind::step, place);
  const auto begin = Clock::now();
  saver_->set_among_best(false);
  record.learning_rate = curve_.at(record.step);
  record.first_sample = progress_.next_sample;
  samples_->fill(record.first_sample);
  if (record.step < keys_.train.steps) {
    const auto batch = engine_->global_batch();
    samples_->start(record.first_sample + static_cast<std::uint64_t>(batch));
  }
  record.data_ms = 1e3 * span_seconds(begin, SpanKind::data);
  record.take(engine_->run_schedule());
  record.take(engine_->reduce_gradients());
  const auto update_begin = Clock::now();
  record.updated = update(record);
  if (optim::traits(keys_.optimizer.name).updates_matrices && engine_->device().is_host()) {
    record.optimizer_ms = 1e3 * seconds_since(update_begin);
  }
  record.tokens =
      static_cast<double>(progress_.advance(engine_->global_batch(), record.step_tokens));
  record.epochs = training_data_->epochs(progress_.next_sample);
  record.step_ms = 1e3 * span_seconds(begin, SpanKind::step, place, range.serial());
  observe(record);
}

bool Trainer::update(StepRecord& record) {
  switch (nonfinite_->judge(record.loss, record.grad_norm)) {
    case NonfiniteSteps::Verdict::update:
      saver_->await_copy();
      record.update = engine_->update({.step = ++progress_.updates,
                                       .learning_rate = record.learning_rate,
                                       .gradient_norm = record.grad_norm});
      return true;
    case NonfiniteSteps::Verdict::skip:
      return false;
    case NonfiniteSteps::Verdict::stop:
      break;
  }
  stop_before_update(record);
}

void Trainer::stop_before_update(const StepRecord& record) {
  // Unchanged state: it is that of after the step before.
  --progress_.step;
  saver_->finish();
  std::string kept = base::format("step {} is saved", progress_.step);
  if (progress_.step == 0) {
    kept = "no step is saved";
  } else if (!saver_->is_saved()) {
    try {
      saver_->save_without_pruning();
    } catch (const comm::AgreedError& error) {
      if (error.code() != base::ExitCode::checkpoint) throw;
      kept = base::format("step {} could not be saved: {}", progress_.step, error.what());
    }
  }
  throw comm::AgreedError(
      {base::ExitCode::checkpoint,
       base::format("loss {} and gradient norm {} at step {} are not finite (training has "
                    "diverged, or the data are broken); nothing was updated by it, and {}; lower "
                    "optimizer.learning_rate, set optimizer.clip_norm or "
                    "optimizer.skip_nonfinite, or begin another run from an earlier step "
                    "(run.directory=NEW checkpoint.load=STEP)",
                    base::number_text(record.loss), base::number_text(record.grad_norm),
                    record.step, kept)},
      base::Rank{0}, cluster_.mesh.world_size());
}

void Trainer::observe(const StepRecord& record) {
  observers_->reached(record.step);
  rank_times_->add(record);
  if (options_.on_step) options_.on_step(record);
  longest_batch_seconds_ = std::max(longest_batch_seconds_, record.seconds());
  observers_->tell(record, keys_.train.steps, nonfinite_->in_a_row());
}

void Trainer::evaluate() {
  const auto outcome = evaluation_->run(progress_, [this](double seconds) {
    longest_batch_seconds_ = std::max(longest_batch_seconds_, seconds);
    // Nothing is wished here: wishes are handled between steps only, and answers would be lost.
    requests_->ask(*cluster_.world, lead_seconds(), {}, saver_->busy());
    return !requests_->answer().stop;
  });
  if (!outcome.completed) return;
  saver_->set_among_best(outcome.is_among_best);
  // Nobody is asked meanwhile: the time before the limit must have room for it.
  if (const auto seconds = evaluation_->take_samples(progress_.step)) {
    longest_batch_seconds_ = std::max(longest_batch_seconds_, *seconds);
  }
}

void Trainer::measure_peak_again() {
  // Not measured on a GPU: its memory is full by now, and the speed of its steps is known.
  const bool measures = kernels_.device().is_host();
  const double flops =
      measures ? fastest_gemms(kernels_, engine_->options().numerics.dtype, *cluster_.world) : 0;
  const double of_run = report_->raise_peak(progress_.step, flops);
  kept_peak_->raise(flops, of_run);
}

bool Trainer::replica_check_is_due() const {
  const auto every = keys_.train.replica_check;
  const bool has_replicas = cluster_.groups.views().replicas().size() > 1 ||
                            cluster_.groups.on(layout::Axis::tensor).size() > 1;
  if (every == 0 || !has_replicas) return false;
  // A state that is saved has been compared, and so has one that an evaluation may find worth
  // saving.
  return progress_.step % every == 0 || progress_.step == keys_.train.steps || saver_->is_due() ||
         saver_->is_due_on_nodes() ||
         (keys_.checkpoint.keep_best > 0 && evaluation_->is_due(progress_.step));
}

bool Trainer::replicas_agree() {
  const auto difference = replica_difference(*engine_, cluster_.groups.views(), cluster_.rank);
  try {
    base::Status status;
    if (!difference.empty()) status = base::Failure{base::ExitCode::peer, difference};
    comm::agree(*cluster_.world, status);
    return true;
  } catch (const comm::AgreedError& error) {
    saver_->finish();
    saver_->await_tidying();
    // A flipped bit passes; a part that flips them is named again at once.
    if (saver_->saved_step() < 0 || went_back_to_ == saver_->saved_step()) throw;
    const auto from = progress_.step;
    const auto found = resume(checkpoints_, *engine_, *cluster_.world, saver_->load_options());
    TRIREME_ENSURE(found.has_value(), "a step that was saved or loaded is there");
    go_on_from(found->progress);
    went_back_to_ = progress_.step;
    saver_->loaded();
    saver_->forget_later_steps();
    report_->went_back(from, progress_.step, error.what());
    return false;
  }
}

double Trainer::lead_seconds() const {
  if (keys_.run.signal_lead) return *keys_.run.signal_lead;
  return launch::shortest_automatic_lead_seconds +
         3.0 * (longest_batch_seconds_ + saver_->expected_seconds());
}

void Trainer::ask() {
  requests_->ask(*cluster_.world, lead_seconds(),
                 {report_->take_beaten_peak(), is_first_rank() && rank_times_->are_due()},
                 saver_->busy());
}

void Trainer::refuse_short_limit() {
  const auto& job = cluster_.identity.job;
  comm::agree(
      *cluster_.world,
      base::Failure{
          base::ExitCode::launch,
          base::format(
              "the time limit of job {} leaves no time for a step (the run stops {} before it, "
              "{}, and would be requeued for ever); ask for more time (--time), or set "
              "run.signal_lead to less than is left",
              job.substr(0, job.find('.')), base::duration_text(lead_seconds()),
              config_.cited("run.signal_lead"))});
}

base::ExitCode Trainer::stop_in_order(std::int64_t steps) {
  const auto stop = requests_->answer().stop;
  if (stop.reason == Stop::time_limit && steps == 0) refuse_short_limit();
  saver_->finish();
  // False: the state is that of the newest checkpoint, and nothing is left to save.
  if (keys_.train.replica_check > 0 && !saver_->is_saved()) replicas_agree();
  // Nothing to save before the first step.
  if (progress_.step > 0 && !saver_->is_saved()) saver_->save();
  saver_->leave_nodes();
  report_->stopped(progress_.step, steps);
  if (stop.for_good() && steps == 0) {
    base::log::warning("train",
                       "nothing was trained: '{}' stops every start (it stays until it is "
                       "removed); remove it, and start again to go on after step {}",
                       (directory_ / "STOP").string(), progress_.step);
    return base::ExitCode::done;
  }
  base::log::info("train", "stopped after step {} by {}; {}start again to continue", progress_.step,
                  stop.text(), stop.for_good() ? "remove it and " : "");
  // A job that requeues itself on 75 would find the file STOP again, and again.
  return stop.for_good() ? base::ExitCode::done : base::ExitCode::requeue;
}

base::ExitCode Trainer::run() {
  const auto begin = Clock::now();
  const auto begin_step = progress_.step;
  const auto steps = keys_.train.steps;
  // A stop has interrupted it.
  if (evaluation_->is_wanted() && progress_.evaluation_is_due) {
    evaluate();
    saver_->save_if_due();
  }
  while (!requests_->answer().stop && progress_.step < steps) {
    ask();
    if (requests_->answer().stop) break;
    if (requests_->answer().wishes.measure_peak) measure_peak_again();
    if (requests_->answer().wishes.rank_times) rank_times_->record(*report_);
    saver_->poll();
    profile_->ask(requests_->take_profile_steps(), progress_.step + 1);
    profile_->before(progress_.step + 1);
    step();
    profile_->after(progress_.step);
    if (replica_check_is_due() && !replicas_agree()) continue;
    progress_.evaluation_is_due = evaluation_->is_due(progress_.step);
    if (progress_.evaluation_is_due) evaluate();
    saver_->save_if_due();
  }
  profile_->finish();
  if (requests_->answer().stop) {
    // Replicas that differed may have led back to where this start has begun.
    const auto done = std::max<std::int64_t>(1, progress_.step - begin_step);
    return stop_in_order(observers_->started() ? done : 0);
  }
  saver_->finish();
  if (!saver_->is_saved() || saver_->is_among_best()) saver_->save();
  saver_->leave_nodes();
  rank_times_->record(*report_);
  observers_->say_arenas(progress_.step);
  report_->finished({.steps = progress_.step,
                     .steps_of_this_start = progress_.step - begin_step,
                     .tokens = progress_.tokens,
                     .seconds = seconds_since(begin)});
  return base::ExitCode::done;
}

}  // namespace trireme::train
