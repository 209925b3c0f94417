// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: when they are due, in the background or not, and what their failure means.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/train/trainer.hpp"

#include "train/clock.hpp"
#include "train/requests.hpp"
#include "train/saving/async_saves.hpp"

#include <algorithm>
#include <future>

namespace trireme::train {
SavedRun Trainer::to_save() {
  progress_.data_fingerprint = data_fingerprint_;
  return {directory_,
          checkpoints_,
          progress_,
          resolved_,
          options_.tool_version,
          contents_,
          [this] { check_ownership(); },
          key_,
          options_.files,
          [this] { requests_->check_lock(); }};
}

void Trainer::check_ownership() const {
  requests_->check_lock();
  if (!keys_.checkpoint.directory.empty()) checkpoint::check_claim(checkpoints_, directory_);
}

void Trainer::saved(const SaveRecord& record) {
  report_->saved(record);
  if (record.tier == SaveRecord::Tier::nodes) return;
  saved_step_ = record.step;
  failed_saves_ = 0;
  longest_save_seconds_ =
      std::max({longest_save_seconds_, record.stall_seconds, record.write_seconds});
}

void Trainer::save() {
  save_without_pruning();
  tidy(saved_step_);
}

void Trainer::save_without_pruning() {
  const auto begin = Clock::now();
  await_tidying();
  requests_->before_save(*cluster_.world);
  const auto report = async_saves_ ? async_saves_->save_now(to_save())
                                   : train::save(to_save(), *engine_, *cluster_.world);
  requests_->saved();
  const double stall = span_seconds(begin, telemetry::SpanKind::save);
  saved({progress_.step, report.payload_bytes, stall, report.seconds, false});
}

void Trainer::tidy(std::int64_t newest) const {
  // The first rank holds the lock, unless another start has taken the run over, perhaps since the
  // last heartbeat.
  if (!lock_ || lock_->is_lost_by_now()) return;
  const auto& keys = keys_.checkpoint;
  const checkpoint::Retention retention{.keep_last = keys.keep_last,
                                        .keep_every = keys.keep_every,
                                        .keep_best = keys.keep_best,
                                        .loaded = loaded_step_};
  try {
    if (!keys.directory.empty()) checkpoint::check_claim(checkpoints_, directory_);
    // This start holds the lock: the processes that wrote them are dead.
    for (const auto& folder : checkpoint::collect_garbage(checkpoints_, std::chrono::seconds{0})) {
      base::log::info("train", "removed '{}', which a save that was killed or replaced had left",
                      folder.lexically_relative(checkpoints_).string());
    }
    if (keys.keep_last > 0 && newest >= 0) checkpoint::prune(checkpoints_, retention, newest);
  } catch (const base::Error& error) {
    base::log::warning("train", "old steps are not removed: {}", error.what());
  }
}

void Trainer::await_tidying() const {
  if (tidying_.valid()) tidying_.wait();
}

bool Trainer::is_tidying() const {
  return tidying_.valid() &&
         tidying_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void Trainer::not_saved(std::int64_t step, SaveRecord::Tier tier, const comm::AgreedError& error) {
  // A failed save is no reason to lose hours of work: the disk may have room again at the next.
  if (error.code() != base::ExitCode::checkpoint) throw error;
  requests_->saved();
  report_->not_saved(step, tier, error.what());
  // What is due then goes to the run directory at once (start_saving, advance): only its failures
  // lose work.
  if (tier == SaveRecord::Tier::nodes) return;
  const auto allowed = keys_.checkpoint.failures_allowed;
  if (++failed_saves_ <= allowed) return;
  throw comm::AgreedError(
      {base::ExitCode::checkpoint,
       base::format(
           "{} saves in a row have failed, and checkpoint.failures_allowed is {} (training "
           "on would only add to what is lost); the last: {}",
           failed_saves_, allowed, error.what())},
      error.first(), error.group_size());
}

void Trainer::save_or_go_on() {
  try {
    save();
  } catch (const comm::AgreedError& error) {
    not_saved(progress_.step, SaveRecord::Tier::shared, error);
  }
}

void Trainer::start_saving(Goal goal) {
  if (async_saves_->is_running()) {
    base::log::info("train",
                    "step {}: the save of step {} is still being written, and training waits for "
                    "it (save less often, or to faster storage)",
                    progress_.step, async_saves_->step());
    while (async_saves_->is_running()) advance();
  }
  const bool started = has_started_saving(goal);
  // The nodes may have refused it: what is due in the run directory goes there at once.
  if (!started && goal == Goal::run && async_saves_->is_for_nodes()) has_started_saving(goal);
}

bool Trainer::has_started_saving(Goal goal) {
  if (goal == Goal::run && async_saves_->passes_nodes()) finish_saving();
  const auto begin = Clock::now();
  if (goal == Goal::run && async_saves_->passes_nodes()) await_tidying();
  requests_->before_save(*cluster_.world);
  try {
    async_saves_->start(to_save(), goal, begin);
    if (goal == Goal::run) requests_->saved();
    return true;
  } catch (const comm::AgreedError& error) {
    not_saved(progress_.step, saving_tier(), error);
    return false;
  }
}

void Trainer::advance_saving() {
  if (!async_saves_) return;
  const auto& busy = requests_->answer().busy;
  if (async_saves_->is_running() && !busy.saving) advance();
  if (!busy.draining) advance_draining();
}

BusyThreads Trainer::busy() const {
  if (!async_saves_) return {};
  auto busy = async_saves_->busy();
  // What tidies takes the folder of a save for garbage.
  busy.draining |= is_tidying();
  return busy;
}

void Trainer::finish_saving() {
  // Each rank waits for its own thread.
  if (!async_saves_) return;
  while (async_saves_->is_running()) advance();
  finish_draining();
}

void Trainer::advance() {
  took_part(async_saves_->step(), saving_tier(), [this] { return async_saves_->advance(); });
  if (!async_saves_->is_refused()) return;
  finish_draining();
  await_tidying();
  took_part(async_saves_->refused_step(), SaveRecord::Tier::shared, [this] {
    async_saves_->start_again();
    return std::nullopt;
  });
}

void Trainer::finish_draining() {
  while (async_saves_->is_draining() || async_saves_->is_to_drain()) advance_draining();
}

void Trainer::advance_draining() {
  if (async_saves_->is_to_drain()) {
    await_tidying();
    took_part(async_saves_->waiting_step(), SaveRecord::Tier::shared, [this] {
      async_saves_->start_draining();
      return std::nullopt;
    });
  } else if (async_saves_->is_draining()) {
    took_part(async_saves_->draining_step(), SaveRecord::Tier::shared,
              [this] { return async_saves_->advance_draining(); });
  }
}

SaveRecord::Tier Trainer::saving_tier() const {
  return async_saves_->is_for_nodes() ? SaveRecord::Tier::nodes : SaveRecord::Tier::shared;
}

void Trainer::took_part(std::int64_t step, SaveRecord::Tier tier,
                        const std::function<std::optional<SaveRecord>()>& advance) {
  try {
    const auto record = advance();
    if (!record) return;
    saved(*record);
  } catch (const comm::AgreedError& error) {
    not_saved(step, tier, error);
    return;
  }
  if (tier == SaveRecord::Tier::nodes) return;
  // Large files take the file system a while to remove.
  if (lock_) {
    tidying_ = std::async(std::launch::async, [this, newest = saved_step_] { tidy(newest); });
  }
}

bool Trainer::save_is_due() const {
  if (requests_->answer().save || is_among_best_) return true;
  const auto& keys = keys_.checkpoint;
  const auto is_multiple = [this](std::int64_t every) {
    return every > 0 && progress_.step % every == 0;
  };
  // A run that has just loaded a step does not save it again.
  return saved_step_ != progress_.step &&
         (is_multiple(keys.every_steps) || is_multiple(keys.keep_every));
}

bool Trainer::node_save_is_due() const {
  const auto every = keys_.checkpoint.local_every_steps;
  return async_saves_ && every > 0 && progress_.step % every == 0;
}

void Trainer::save_if_due() {
  // Last step: run() saves it, and fails if that fails.
  if (progress_.step >= keys_.train.steps) return;
  if (!save_is_due()) {
    if (node_save_is_due()) start_saving(Goal::nodes);
  } else if (async_saves_) {
    start_saving(Goal::run);
  } else {
    save_or_go_on();
  }
}

void Trainer::recover_from_nodes() {
  const auto* const tier = async_saves_ ? async_saves_->tier() : nullptr;
  if (tier == nullptr) return;
  const auto begin = Clock::now();
  const auto checkpoints = checkpoint::checkpoints_of_run(directory_);
  const auto found =
      checkpoint::recover(*tier, checkpoints, *cluster_.world, load_options().access);
  if (!found) return;
  base::log::info("train", "recovered step {} from '{}' of the nodes in {}", found->step,
                  keys_.checkpoint.local_directory, base::duration_text(seconds_since(begin)));
}

}  // namespace trireme::train
