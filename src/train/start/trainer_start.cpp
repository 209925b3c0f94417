// SPDX-License-Identifier: Apache-2.0
// The begin of a start: its run is opened, told and written down.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/data/exposure.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/train/continuation.hpp"
#include "trireme/train/trainer.hpp"

#include "train/profile.hpp"
#include "train/rank_times_recorder.hpp"
#include "train/requests.hpp"
#include "train/saving/saver.hpp"
#include "train/start/setup.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

/// Logs what a start changes of its run.
void say_changes(const std::vector<std::string>& changes) {
  constexpr std::size_t most = 8;
  if (changes.empty()) return;
  const auto told = std::min(most, changes.size());
  const std::vector<std::string> first(changes.begin(),
                                       changes.begin() + static_cast<std::ptrdiff_t>(told));
  base::log::info("train", "changed since the last start: {}{}", base::join(first, ", "),
                  changes.size() > told
                      ? base::format(", and {} more (trireme config diff)", changes.size() - told)
                      : "");
}

}  // namespace

void Trainer::open_run(runtime::Session& session) {
  auto& world = *cluster_.world;
  base::Status opened;
  if (is_first_rank()) {
    auto lock = train::open_run(resolved_, options_.start, cluster_.identity.job);
    if (lock) {
      lock_ = std::move(lock).value();
    } else {
      opened = lock.failure();
    }
  }
  comm::agree(world, opened);
  std::string checkpoints;
  comm::agree_after(world, [&] {
    if (!is_first_rank()) return;
    checkpoints = checkpoint::choose_checkpoints(directory_, keys_.checkpoint.directory).native();
  });
  checkpoints_ = comm::broadcast_bytes(world, checkpoints);
  session.run_is_open();
  comm::agree(world, enter_run(directory_, cluster_.rank));
  const auto& steps = keys_.train.profile;
  profile_ = std::make_unique<Profile>(
      cluster_, directory_,
      steps.empty() ? std::nullopt
                    : std::optional(base::value_or_throw(config::parse_step_range(steps))),
      kernels_.device().is_host() ? Profile::Gpu::none : Profile::Gpu::used);
  rank_times_ = std::make_unique<RankTimesRecorder>(cluster_, directory_);
  requests_ = std::make_unique<Requests>(Requests::Sources{
      directory_, keys_.checkpoint.every_minutes, options_.limit, lock_ ? &*lock_ : nullptr});
}

void Trainer::keep_run_files(const model::ModelConfig& model) {
  comm::agree_after(*cluster_.world, [&] {
    if (!is_first_rank()) return;
    if (saver_->loaded_step()) say_changes(changes_since_last_start(resolved_));
    write_run_files(resolved_, model);
  });
}

std::string Trainer::exposure_text(std::int64_t batch) const {
  const auto steps = keys_.train.steps;
  const auto left = std::max(std::int64_t{0}, steps - progress_.step);
  const auto at_end = progress_.next_sample + static_cast<std::uint64_t>(left * batch);
  return data::text(data::exposure_of(*training_data_, at_end), steps, batch);
}

void Trainer::say_start(const model::ModelConfig& model) {
  const auto& options = engine_->options();
  for (const auto& text : config::notes(config_)) base::log::warning("train", "{}", text);
  // "1234.0": the job and its step.
  const auto& job = cluster_.identity.job;
  const auto batch = engine::global_batch(options);
  const auto warning = data::repeats_in_batch(*training_data_, batch);
  if (!warning.empty()) base::log::warning("train", "{}", warning);
  report_->started(
      {.model = model::name(model.architecture),
       .parameters = model::parameter_count(model),
       .sequences_per_step = batch,
       .sequence_length = options.schedule.sequence_length,
       .data = config_.shown("data.train"),
       .exposure = exposure_text(batch),
       .first_step = progress_.step + 1,
       .traffic = is_first_rank() ? engine::traffic_of(options) : engine::StepTraffic{},
       .stage_layers = engine::stage_layers(options).counts,
       .beginning = beginning_,
       .job = job.substr(0, job.find('.'))});
  const auto end = progress_.planned_steps;
  const auto steps = keys_.train.steps;
  if (curve_.falls() && end > 0 && progress_.step >= end && progress_.step < steps) {
    base::log::warning(
        "train",
        "the run was to end at step {}, and its learning rate has come to its minimum there; the "
        "{} steps more begin at {:.2e} of {:.2e} (they may hardly learn); to train on at a higher "
        "rate, set optimizer.curve = constant or a larger train.steps",
        end, steps - progress_.step, curve_.at(progress_.step + 1), curve_.peak);
  }
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

}  // namespace trireme::train
