// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/trainer.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/device/versions.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/launch/validation.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/train/continuation.hpp"

#include "choose_gemms.hpp"
#include "nonfinite_steps.hpp"
#include "say_attention.hpp"
#include "train/clock.hpp"
#include "train/evaluation.hpp"
#include "train/observers.hpp"
#include "train/peak/kept_peak.hpp"
#include "train/peak/peak.hpp"
#include "train/profile.hpp"
#include "train/rank_times_recorder.hpp"
#include "train/requests.hpp"
#include "train/saving/replica_check.hpp"
#include "train/saving/saver.hpp"
#include "train/start/resolved_values.hpp"
#include "train/start/setup.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::train {

namespace fs = std::filesystem;
using telemetry::SpanKind;

namespace {

Report::Settings report_settings(const config::Config& config, const engine::EngineOptions& options,
                                 const Peak& peak, bool speaks) {
  const auto& keys = config.options();
  Report::Settings settings;
  settings.directory = config::run_directory(config);
  settings.run = config::run_label(config);
  settings.steps = keys.train.steps;
  settings.log_every = keys.train.log_every;
  settings.log_interval = keys.train.log_interval;
  settings.flops_per_token =
      model::flops_per_token(options.model, options.schedule.sequence_length);
  settings.peak_flops = peak.flops;
  settings.peak_source = peak.source;
  settings.peak_may_be_beaten = peak.kind == Peak::Kind::measured;
  settings.speaks = speaks;
  return settings;
}

}  // namespace

Trainer::Trainer(const config::Config& config, runtime::Session& session, StartOptions start)
    : config_(continued_together(config, session.cluster.mesh, *session.cluster.world)),
      keys_(config_.options()),
      cluster_(session.cluster),
      kernels_(*session.kernels),
      directory_(config::run_directory(config_)),
      options_(std::move(start)),
      curve_(optim::curve_from(keys_)),
      nonfinite_(std::make_unique<NonfiniteSteps>(keys_.optimizer.skip_nonfinite)) {
  if (cluster_.mpi == nullptr) {
    load(session);
  } else {
    // Announced before members are destroyed, whose threads may wait for a file system.
    cluster_.mpi->announcing([&] { load(session); });
  }
}

void Trainer::load(runtime::Session& session) {
  auto& cluster = cluster_;
  auto& kernels = kernels_;
  auto& world = *cluster_.world;
  const auto model = comm::agree(world, model_from(config_));
  const auto options =
      comm::agree(world, engine::options_from(config_, model, cluster.mesh, cluster.rank));
  say_attention(kernels, options, world);
  training_data_ = engine::open_dataset(keys_, engine::Split::train, model, world);
  data_fingerprint_ = engine::agreed_fingerprint(*training_data_, world);
  std::unique_ptr<data::TokenDataset> validation_data;
  if (!keys_.data.validation.empty()) {
    validation_data = engine::open_dataset(keys_, engine::Split::validation, model, world);
  }
  const auto samples = inference::agreed_sample_task(config_, model, world);
  cluster_.start_up.reached("data");
  auto key = checkpoint::read_key_on_first_rank(keys_.checkpoint.key_file, *cluster_.world);
  resolved_ = with_values(config_, options);
  open_run(session);
  cluster_.start_up.reached("run directory");
  // Order: before arenas, because timing takes memory of its own, and frees it.
  if (auto* tuning = kernels.gemm_tuning(); tuning && !keys_.numerics.deterministic) {
    choose_gemms(*tuning, engine::gemm_calls_of(options),
                 {directory_ / "products.json", cluster.cache_folder}, world);
    cluster_.start_up.reached("products");
  }
  auto& arenas = cluster.shared_memory ? *cluster.shared_memory : kernels.device();
  memory_ = std::make_unique<engine::Memory>(
      engine::Memory::on(arenas, inference::measure_with_samples(options, samples)));
  const auto groups = cluster.groups.views();
  engine_ = std::make_unique<engine::Engine>(options, groups, kernels, *memory_);
  std::unique_ptr<inference::Sampler> sampler;
  if (samples) {
    sampler = std::make_unique<inference::Sampler>(*samples, *engine_, groups, kernels, *memory_);
  }
  cluster_.start_up.reached("arenas");
  const auto& cache = cluster.cache_folder;
  kept_peak_ = std::make_unique<KeptPeak>(
      KeptPeak::Files{directory_ / "peak.json", cache.empty() ? cache : cache / "peak.json"});
  const auto peak =
      find_peak(config_, kernels, {options.numerics.dtype, cluster.binding.gpu_bus_id, rank_kind()},
                *kept_peak_, world);
  base::log::info("train", "{}", peak.text());
  report_ = std::make_unique<Report>(report_settings(config_, options, peak, is_first_rank()));
  cluster_.start_up.reached("peak");
  evaluation_ = std::make_unique<Evaluation>(keys_, std::move(validation_data), std::move(sampler),
                                             *engine_, *report_);
  observers_ = std::make_unique<Observers>(
      Observers::Watched{cluster_, kernels, *engine_, *memory_, *report_});
  saver_ = std::make_unique<Saver>(
      Saver::Run{keys_, resolved_, directory_, checkpoints_, options_.tool_version, std::move(key),
                 options_.files, lock_ ? &*lock_ : nullptr},
      progress_, *engine_, world, *requests_, *report_);
  restore(options_.start);
  keep_run_files(model);
  saver_->forget_later_steps();
  saver_->tidy();
  say_start(model);
  observers_->say_where();
  cluster_.start_up.reached("state");
}

Trainer::~Trainer() = default;

void Trainer::comment_job(const base::Environment& environment) {
  if (is_first_rank()) observers_->comment_job(environment, keys_.run.job_comment);
}

void Trainer::go_on_from(const Progress& progress) {
  progress_ = progress;
  progress_.data_fingerprint = data_fingerprint_;
}

void Trainer::restore(Start start) {
  const auto begin = Clock::now();
  const auto load = keys_.checkpoint.load.value_or("");
  std::optional<Resumed> found;
  if (start == Start::resume && load != "none") {
    saver_->recover_from_nodes();
    found = resume(checkpoints_, *engine_, *cluster_.world, saver_->load_options());
    if (!found) refuse_emptied(directory_, checkpoints_, *cluster_.world);
  } else if (is_first_rank() && start == Start::resume) {
    say_left_steps(checkpoints_);
  }
  beginning_ = "begins anew";
  const bool is_of_run = found.has_value();
  if (found) {
    const auto step = found->progress.step;
    beginning_ =
        step == 0 ? "begins with imported weights" : base::format("goes on after step {}", step);
  }
  if (!found && !load.empty() && load != "none") {
    found = start_from(load, *engine_, *cluster_.world, saver_->load_options());
    beginning_ = base::format("begins with '{}'", load);
  }
  if (!found) {
    engine_->initialise();
    progress_.data_fingerprint = data_fingerprint_;
    return;
  }
  go_on_from(found->progress);
  if (is_of_run) saver_->loaded();
  if (found->progress.data_fingerprint != data_fingerprint_ && progress_.next_sample > 0) {
    base::log::warning("train",
                       "the data or their order have changed since step {}; training goes on at "
                       "sample {} of the new order",
                       progress_.step, progress_.next_sample);
  }
  LoadRecord record{.step = progress_.step, .seconds = seconds_since(begin)};
  if (const auto& read = found->report) {
    record.read_seconds = read->seconds;
    record.read_bytes = read->all_read_bytes;
    record.read_ratio = read->largest_read_ratio;
  }
  report_->loaded(record);
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
  engine::BatchLoader(*training_data_).fill(*engine_, record.first_sample);
  record.data_seconds = span_seconds(begin, SpanKind::data);
  record.take(engine_->run_schedule());
  record.take(engine_->reduce_gradients());
  const auto update_begin = Clock::now();
  record.updated = update(record);
  if (optim::traits(keys_.optimizer.name).updates_matrices && engine_->device().is_host()) {
    record.optimizer_seconds = seconds_since(update_begin);
  }
  record.tokens = progress_.advance(engine::global_batch(engine_->options()), record.step_tokens);
  record.epochs = training_data_->epochs(progress_.next_sample);
  record.seconds = span_seconds(begin, SpanKind::step, place, range.serial());
  observe(record);
}

void Trainer::observe(const StepRecord& record) {
  observers_->reached(record.step);
  rank_times_->add(record);
  if (options_.on_step) options_.on_step(record);
  longest_batch_seconds_ = std::max(longest_batch_seconds_, record.seconds);
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

/// What decides how fast this rank computes, beside its device.
std::string Trainer::rank_kind() const {
  const auto& binding = cluster_.binding;
  return base::format("{}; {}; {}; {}", options_.tool_version, device::cpu_model(),
                      base::counted(binding.threads, "thread"), binding.reason);
}

bool Trainer::replica_check_is_due() const {
  const auto every = keys_.train.replica_check;
  if (every == 0 || cluster_.groups.on(layout::Axis::data).size() == 1) return false;
  // What is saved has been compared, and so has what an evaluation may find worth saving.
  return progress_.step % every == 0 || progress_.step == keys_.train.steps || saver_->is_due() ||
         saver_->is_due_on_nodes() ||
         (keys_.checkpoint.keep_best > 0 && evaluation_->is_due(progress_.step));
}

bool Trainer::replicas_agree() {
  const auto difference =
      replica_difference(*engine_, cluster_.groups.on(layout::Axis::data), cluster_.rank);
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
