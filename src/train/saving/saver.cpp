// SPDX-License-Identifier: Apache-2.0
#include "train/saving/saver.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/retention.hpp"

#include "train/clock.hpp"
#include "train/saving/node_tier.hpp"
#include "train/saving/saved_contents.hpp"

#include <algorithm>
#include <utility>

namespace trireme::train {

Saver::Saver(Run run, const Progress& progress, engine::Engine& engine, comm::ProcessGroup& world,
             Requests& requests, Report& report)
    : run_(std::move(run)),
      keys_(run_.keys.checkpoint),
      progress_(progress),
      engine_(engine),
      world_(world),
      requests_(requests),
      report_(report),
      contents_(saved_contents(engine.sharding())) {
  if (!keys_.beside_training()) return;
  async_saves_ = std::make_unique<AsyncSaves>(engine_, world_, contents_,
                                              open_node_tier(keys_, run_.directory, world_));
}

SavedRun Saver::to_save() {
  return {run_.directory,
          run_.checkpoints,
          progress_,
          run_.resolved,
          run_.tool_version,
          contents_,
          [this] { check_ownership(); },
          run_.key,
          run_.files,
          [this] { requests_.check_lock(); }};
}

void Saver::check_ownership() const {
  requests_.check_lock();
  if (!keys_.directory.empty()) checkpoint::check_claim(run_.checkpoints, run_.directory);
}

void Saver::committed(const SaveRecord& record) {
  report_.saved(record);
  if (run_.interval != nullptr && run_.interval->took(record)) {
    requests_.save_every(run_.interval->now().minutes);
    report_.saves_every(progress_.step, run_.interval->now());
  }
  if (record.tier == SaveRecord::Tier::nodes) return;
  saved_step_ = record.step;
  failed_ = 0;
  longest_seconds_ = std::max({longest_seconds_, record.stall_seconds, record.write_seconds});
}

void Saver::save() {
  save_without_pruning();
  tidy();
}

void Saver::save_without_pruning() {
  const auto begin = Clock::now();
  await_tidying();
  requests_.before_save(world_);
  const auto report =
      async_saves_ ? async_saves_->save_now(to_save()) : train::save(to_save(), engine_, world_);
  requests_.saved();
  const double stall = span_seconds(begin, telemetry::SpanKind::save);
  committed({progress_.step, report.payload_bytes, stall, report.seconds, false});
}

void Saver::tidy(std::int64_t newest) const {
  // The first rank holds the lock, unless another start has taken the run over, perhaps since the
  // last heartbeat.
  if (run_.lock == nullptr || run_.lock->is_lost_by_now()) return;
  const checkpoint::Retention retention{.keep_last = keys_.keep_last,
                                        .keep_every = keys_.keep_every,
                                        .keep_best = keys_.keep_best,
                                        .loaded = loaded_step_};
  try {
    if (!keys_.directory.empty()) checkpoint::check_claim(run_.checkpoints, run_.directory);
    // This start holds the lock: the processes that wrote them are dead.
    for (const auto& folder :
         checkpoint::collect_garbage(run_.checkpoints, std::chrono::seconds{0})) {
      base::log::info("train", "removed '{}', which a save that was killed or replaced had left",
                      folder.lexically_relative(run_.checkpoints).string());
    }
    if (keys_.keep_last > 0 && newest >= 0) checkpoint::prune(run_.checkpoints, retention, newest);
  } catch (const base::Error& error) {
    base::log::warning("train", "old steps are not removed: {}", error.what());
  }
}

void Saver::await_tidying() const {
  if (tidying_.valid()) tidying_.wait();
}

bool Saver::is_tidying() const {
  return tidying_.valid() &&
         tidying_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void Saver::not_saved(std::int64_t step, SaveRecord::Tier tier, const comm::AgreedError& error) {
  // A failed save is no reason to lose hours of work: the disk may have room again at the next.
  if (error.code() != base::ExitCode::checkpoint) throw error;
  requests_.saved();
  report_.not_saved(step, tier, error.what());
  // A save that is due then goes to the run directory at once (start, poll_save): only its failures
  // lose work.
  if (tier == SaveRecord::Tier::nodes) return;
  const auto allowed = keys_.failures_allowed;
  if (++failed_ <= allowed) return;
  throw comm::AgreedError(
      {base::ExitCode::checkpoint,
       base::format(
           "{} saves in a row have failed, and checkpoint.failures_allowed is {} (training "
           "on would only add to what is lost); the last: {}",
           failed_, allowed, error.what())},
      error.first(), error.group_size());
}

void Saver::save_or_go_on() {
  try {
    save();
  } catch (const comm::AgreedError& error) {
    not_saved(progress_.step, SaveRecord::Tier::shared, error);
  }
}

void Saver::start(Goal goal) {
  if (async_saves_->is_running()) {
    base::log::info("train",
                    "step {}: the save of step {} is still being written, and training waits for "
                    "it (save less often, or to faster storage)",
                    progress_.step, async_saves_->step());
    while (async_saves_->is_running()) poll_save();
  }
  const bool started = has_started(goal);
  // The nodes may have refused it: what is due in the run directory goes there at once.
  if (!started && goal == Goal::run && async_saves_->is_for_nodes()) has_started(goal);
}

bool Saver::has_started(Goal goal) {
  if (goal == Goal::run && async_saves_->passes_nodes()) finish();
  const auto begin = Clock::now();
  if (goal == Goal::run && async_saves_->passes_nodes()) await_tidying();
  requests_.before_save(world_);
  try {
    async_saves_->start(to_save(), goal, begin);
    if (goal == Goal::run) requests_.saved();
    return true;
  } catch (const comm::AgreedError& error) {
    not_saved(progress_.step, tier(), error);
    return false;
  }
}

void Saver::poll() {
  if (!async_saves_) return;
  const auto& busy = requests_.answer().busy;
  if (async_saves_->is_running() && !busy.saving) poll_save();
  if (!busy.draining) drain();
}

BusyThreads Saver::busy() const {
  if (!async_saves_) return {};
  auto busy = async_saves_->busy();
  // Tidying takes the folder of a save for garbage.
  busy.draining |= is_tidying();
  return busy;
}

void Saver::finish() {
  // Each rank waits for its own thread.
  if (!async_saves_) return;
  while (async_saves_->is_running()) poll_save();
  finish_draining();
}

void Saver::poll_save() {
  took_part(async_saves_->step(), tier(), [this] { return async_saves_->poll(); });
  if (!async_saves_->is_refused()) return;
  finish_draining();
  await_tidying();
  took_part(async_saves_->refused_step(), SaveRecord::Tier::shared, [this] {
    async_saves_->start_again();
    return std::nullopt;
  });
}

void Saver::finish_draining() {
  while (async_saves_->is_draining() || async_saves_->is_to_drain()) drain();
}

void Saver::drain() {
  if (async_saves_->is_to_drain()) {
    await_tidying();
    took_part(async_saves_->waiting_step(), SaveRecord::Tier::shared, [this] {
      async_saves_->start_draining();
      return std::nullopt;
    });
  } else if (async_saves_->is_draining()) {
    took_part(async_saves_->draining_step(), SaveRecord::Tier::shared,
              [this] { return async_saves_->poll_drain(); });
  }
}

SaveRecord::Tier Saver::tier() const {
  return async_saves_->is_for_nodes() ? SaveRecord::Tier::nodes : SaveRecord::Tier::shared;
}

void Saver::took_part(std::int64_t step, SaveRecord::Tier tier,
                      const std::function<std::optional<SaveRecord>()>& part) {
  try {
    const auto record = part();
    if (!record) return;
    committed(*record);
  } catch (const comm::AgreedError& error) {
    not_saved(step, tier, error);
    return;
  }
  if (tier == SaveRecord::Tier::nodes) return;
  // Large files take the file system a while to remove.
  if (run_.lock != nullptr) {
    tidying_ = std::async(std::launch::async, [this, newest = saved_step_] { tidy(newest); });
  }
}

bool Saver::is_due() const {
  if (requests_.answer().save || is_among_best_) return true;
  const auto is_multiple = [this](std::int64_t every) {
    return every > 0 && progress_.step % every == 0;
  };
  // A run that has just loaded a step does not save it again.
  return !is_saved() && (is_multiple(keys_.every_steps) || is_multiple(keys_.keep_every));
}

bool Saver::is_due_on_nodes() const {
  const auto every = keys_.local_every_steps;
  return async_saves_ && every > 0 && progress_.step % every == 0;
}

void Saver::save_if_due() {
  // Last step: the end of the run saves it, and fails if that fails.
  if (progress_.step >= run_.keys.train.steps) return;
  if (!is_due()) {
    if (is_due_on_nodes()) start(Goal::nodes);
  } else if (async_saves_) {
    start(Goal::run);
  } else {
    save_or_go_on();
  }
}

double Saver::expected_seconds() const {
  return longest_seconds_ > 0 ? longest_seconds_
                              : guessed_save_seconds(engine_.options().model, world_.size());
}

checkpoint::LoadOptions Saver::load_options() const {
  checkpoint::LoadOptions options;
  options.access.key = run_.key;
  return options;
}

void Saver::recover_from_nodes() {
  const auto* const tier = async_saves_ ? async_saves_->tier() : nullptr;
  if (tier == nullptr) return;
  const auto begin = Clock::now();
  const auto checkpoints = checkpoint::checkpoints_of_run(run_.directory);
  const auto found = checkpoint::recover(*tier, checkpoints, world_, load_options().access);
  if (!found) return;
  base::log::info("train", "recovered step {} from '{}' of the nodes in {}", found->step,
                  keys_.local_directory, base::duration_text(seconds_since(begin)));
}

}  // namespace trireme::train
