#include "trireme/train/trainer.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/runtime/agree.hpp"
#include "trireme/train/batch_loader.hpp"
#include "trireme/train/evaluate.hpp"
#include "trireme/train/stop_signal.hpp"

#include "choose_products.hpp"
#include "groups.hpp"
#include "nonfinite_steps.hpp"
#include "peak.hpp"
#include "resolved_values.hpp"
#include "setup.hpp"

#include <algorithm>

namespace trireme::train {

using Clock = std::chrono::steady_clock;

namespace {

/// Reasons to stop beside the numbers of signals; where several hold, the largest counts.
constexpr int time_limit = 1 << 16;
constexpr int stop_file = 1 << 17;

/// How often the run directory is asked for a file STOP: shared file systems are slow to answer.
constexpr double stop_file_seconds = 1.0;

std::string reason_text(int reason) {
  if (reason == time_limit) return "the nearing time limit of the job";
  if (reason == stop_file) return "the file STOP in the run directory";
  return base::format("signal {}", reason);
}

/// The largest of all ranks' numbers.
std::int32_t agree_largest(comm::ProcessGroup& world, std::int32_t mine) {
  world.all_reduce(device::Tensor(&mine, device::DType::i32, {1}), comm::ReduceOp::max);
  return mine;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Report::Settings report_settings(const config::Config& config, const engine::EngineOptions& options,
                                 const Peak& peak, bool speaks) {
  Report::Settings settings;
  settings.directory = config::run_directory(config);
  settings.run = config.text("run.name");
  settings.steps = config.integer("train.steps");
  settings.log_every = config.integer("train.log_every");
  settings.flops_per_token = model::flops_per_token(options.model, options.sequence_length);
  settings.peak_flops = peak.flops;
  settings.peak_source = peak.source;
  settings.peak_may_be_beaten = peak.kind == Peak::Kind::measured;
  settings.speaks = speaks;
  return settings;
}

}  // namespace

Trainer::Trainer(const config::Config& config, runtime::Cluster& cluster, device::Kernels& kernels,
                 Start start, std::optional<Clock::time_point> job_end)
    : config_(config),
      cluster_(cluster),
      kernels_(kernels),
      directory_(config::run_directory(config)),
      curve_(optim::curve_from(config)),
      nonfinite_(std::make_unique<NonfiniteSteps>(config.integer("optimizer.skip_nonfinite"))),
      saved_at_(Clock::now()),
      job_end_(job_end) {
  auto& world = *cluster_.world;
  const auto model = runtime::agree(world, model_from(config));
  const auto options =
      runtime::agree(world, engine::options_from(config, model, cluster.mesh, cluster.rank));
  training_data_ = runtime::agree(world, open_dataset(config, "data.train", model));
  if (!config.weighted_texts("data.validation").empty()) {
    validation_data_ = runtime::agree(world, open_dataset(config, "data.validation", model));
  }
  cluster_.start_up.reached("data");
  resolved_ = with_values(config, options);
  runtime::agree(world, prepare_directory(resolved_, model, start, cluster.rank));
  cluster_.start_up.reached("run directory");
  // Before arenas: timing takes memory of its own, and gives it back.
  if (auto* tuning = kernels.product_tuning(); tuning && !config.flag("numerics.deterministic")) {
    choose_products(*tuning, engine::products_of(options),
                    {directory_ / "products.json", cluster.cache_folder}, world);
    cluster_.start_up.reached("products");
  }
  auto& arenas = cluster.shared_memory ? *cluster.shared_memory : kernels.device();
  memory_ = std::make_unique<engine::Memory>(engine::Memory::on(arenas, engine::measure(options)));
  engine_ = std::make_unique<engine::Engine>(options, groups_of(cluster), kernels, *memory_);
  cluster_.start_up.reached("arenas");
  const auto peak = find_peak(config, kernels, options.dtype, cluster.binding.gpu_bus_id, world);
  base::log::info("train", "{}", peak.text());
  report_ = std::make_unique<Report>(report_settings(config, options, peak, is_first_rank()));
  cluster_.start_up.reached("peak");
  restore(start);
  report_->started(progress_.step + 1, model::parameter_count(model));
  say_where();
  cluster_.start_up.reached("state");
}

Trainer::~Trainer() = default;

void Trainer::comment_job(const base::Environment& environment) {
  const std::chrono::duration<double> interval(config_.seconds("run.job_comment"));
  if (!is_first_rank()) return;
  comment_ = std::make_unique<runtime::JobComment>(
      environment, std::chrono::duration_cast<std::chrono::milliseconds>(interval));
}

void Trainer::say_where() const {
  const auto& binding = cluster_.binding;
  // Into every rank's log file, where people look for the rank that Slurm calls task 5.
  base::log::write_once(
      base::log::Level::debug, "runtime",
      base::format("rank {} is task {} of {}{}; CPUs {} ({}){}", cluster_.rank.value(),
                   cluster_.task, runtime::name(cluster_.identity.launcher),
                   cluster_.identity.job.empty() ? "" : " in job " + cluster_.identity.job,
                   binding.cpus, binding.reason,
                   binding.gpu_bus_id.empty() ? "" : ", GPU " + binding.gpu_bus_id));
}

void Trainer::say_memory() const {
  auto& device = kernels_.device();
  if (device.is_host()) return;
  report_->memory(progress_.step, {.device = device.name(),
                                   .arenas = engine::total_bytes(memory_->peak_bytes()),
                                   .libraries = kernels_.library_memory(),
                                   .graphs = engine_->recorded().bytes,
                                   .taken = device.taken_bytes()});
}

void Trainer::restore(Start start) {
  const auto begin = Clock::now();
  const auto load = config_.text_or("checkpoint.load", "");
  std::optional<Progress> found;
  if (start == Start::resume && load != "none") {
    found = resume(directory_, *engine_, *cluster_.world);
  }
  if (found) saved_step_ = found->step;
  if (!found && !load.empty() && load != "none") {
    found = start_from(load, *engine_, *cluster_.world);
  }
  if (!found) {
    engine_->initialise();
    return;
  }
  progress_ = *found;
  if (progress_.data_fingerprint != training_data_->fingerprint() && progress_.next_sample > 0) {
    base::log::warning("train",
                       "the data or their order have changed since step {}; training goes on at "
                       "sample {} of the new order",
                       progress_.step, progress_.next_sample);
  }
  report_->loaded(progress_.step, seconds_since(begin));
}

void Trainer::step() {
  const auto begin = Clock::now();
  StepRecord record;
  record.step = ++progress_.step;
  BatchLoader(*training_data_).fill(*engine_, progress_.next_sample);
  const auto run = engine_->run_schedule();
  const auto reduced = engine_->reduce_gradients();
  record.learning_rate = curve_.at(record.step);
  record.loss = run.loss;
  record.gradient_norm = reduced.gradient_norm;
  const bool updated = update(record);
  progress_.next_sample += static_cast<std::uint64_t>(global_batch(engine_->options()));
  progress_.tokens += static_cast<std::uint64_t>(run.tokens);
  if (!started_) {
    started_ = true;
    cluster_.start_up.reached("first step");
    report_->started_up(record.step, cluster_.start_up.slowest(*cluster_.world));
    say_memory();
  }
  // Micro-batches are recorded in the first steps: what they took is known when none are any more.
  if (const auto made = engine_->recorded().made; made != recordings_seen_) {
    recordings_seen_ = made;
  } else if (made != recordings_told_) {
    recordings_told_ = made;
    say_memory();
  }
  record.step_tokens = run.tokens;
  record.tokens = progress_.tokens;
  record.seconds = seconds_since(begin);
  record.exposed_seconds = reduced.exposed_seconds;
  record.bubble_seconds = run.bubble_seconds;
  longest_step_seconds_ = std::max(longest_step_seconds_, record.seconds);
  if (updated) {
    report_->step(record);
  } else {
    report_->skipped(record, nonfinite_->in_a_row());
  }
  if (comment_) {
    comment_->offer(base::format("step {}/{}, loss {:.4f}", record.step,
                                 config_.integer("train.steps"), record.loss));
  }
}

bool Trainer::update(const StepRecord& record) {
  switch (nonfinite_->judge(record.loss, record.gradient_norm)) {
    case NonfiniteSteps::Verdict::update:
      engine_->update(record.learning_rate, record.step);
      return true;
    case NonfiniteSteps::Verdict::skip:
      return false;
    case NonfiniteSteps::Verdict::stop:
      break;
  }
  stop_before_update(record);
}

void Trainer::stop_before_update(const StepRecord& record) {
  // Nothing has changed yet: the state is that of after the step before.
  --progress_.step;
  std::string kept = base::format("step {} is saved", progress_.step);
  if (progress_.step == 0) {
    kept = "no step is saved";
  } else if (saved_step_ != progress_.step) {
    try {
      save_without_pruning();
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
                    "optimizer.skip_nonfinite, or go on from an earlier step by checkpoint.load",
                    number_text(record.loss), number_text(record.gradient_norm), record.step,
                    kept)},
      base::Rank{0}, cluster_.mesh.world_size());
}

void Trainer::measure_peak_again() {
  // A card's memory is full by now, and what a step reached is known.
  const bool measures = kernels_.device().is_host();
  const double flops =
      measures ? fastest_products(kernels_, engine_->options().dtype, *cluster_.world) : 0;
  report_->raise_peak(progress_.step, flops);
}

void Trainer::evaluate() {
  const auto begin = Clock::now();
  // 0 means all that is held out.
  const auto batches = config_.integer("train.eval_batches");
  const auto total = batches == 0 ? train::evaluate(*validation_data_, *engine_)
                                  : train::evaluate(*validation_data_, *engine_, batches);
  report_->evaluated(progress_.step, total.loss_sum / static_cast<double>(total.tokens),
                     total.tokens, seconds_since(begin));
}

void Trainer::save() {
  save_without_pruning();
  prune();
}

void Trainer::save_without_pruning() {
  const auto begin = Clock::now();
  progress_.data_fingerprint = training_data_->fingerprint();
  const auto bytes = train::save(directory_, progress_, resolved_, *engine_, *cluster_.world);
  saved_step_ = progress_.step;
  saved_at_ = Clock::now();
  longest_save_seconds_ = std::max(longest_save_seconds_, seconds_since(begin));
  report_->saved(progress_.step, bytes, seconds_since(begin));
}

void Trainer::prune() const {
  const auto keep = config_.count("checkpoint.keep_last");
  if (keep <= 0 || !is_first_rank()) return;
  try {
    checkpoint::prune(checkpoint::checkpoints_of_run(directory_), keep);
  } catch (const base::Error& error) {
    base::log::warning("train", "old steps are not removed: {}", error.what());
  }
}

void Trainer::save_or_go_on() {
  try {
    save();
  } catch (const comm::AgreedError& error) {
    // Hours of work are worth more than one save: the disk may have room again at the next.
    if (error.code() != base::ExitCode::checkpoint) throw;
    saved_at_ = Clock::now();
    report_->not_saved(progress_.step, error.what());
  }
}

void Trainer::save_if_due() {
  const auto every_steps = config_.integer("checkpoint.every_steps");
  const auto every_minutes = static_cast<double>(config_.integer("checkpoint.every_minutes"));
  const bool by_step = every_steps > 0 && progress_.step % every_steps == 0;
  // Clocks differ between ranks: rank 0's opinion counts.
  const bool by_time =
      every_minutes > 0 &&
      agree_largest(*cluster_.world,
                    is_first_rank() && seconds_since(saved_at_) >= 60.0 * every_minutes ? 1 : 0) !=
          0;
  // The last step is saved by run(), which does not go on without.
  if ((by_step || by_time) && progress_.step < config_.integer("train.steps")) save_or_go_on();
}

double Trainer::lead_seconds() const {
  if (!config_.automatic("run.signal_lead")) return config_.seconds("run.signal_lead");
  return 60.0 + 3.0 * (longest_step_seconds_ + longest_save_seconds_);
}

bool Trainer::finds_stop_file() {
  if (!is_first_rank() ||
      (looked_for_stop_ && seconds_since(*looked_for_stop_) < stop_file_seconds)) {
    return false;
  }
  looked_for_stop_ = Clock::now();
  std::error_code ignored;
  return std::filesystem::exists(directory_ / "STOP", ignored);
}

int Trainer::stop_reason() {
  if (finds_stop_file()) return stop_file;
  if (const int signal = StopSignal::received()) return signal;
  const double lead = lead_seconds();
  // Clocks and views of a file system differ between ranks: the first one's opinion counts.
  const bool ends = is_first_rank() && job_end_ && lead > 0 && -seconds_since(*job_end_) <= lead;
  return ends ? time_limit : 0;
}

base::ExitCode Trainer::stop_in_order(int reason) {
  // Before the first step there is nothing to save.
  if (progress_.step > 0 && saved_step_ != progress_.step) save();
  report_->event("stop", progress_.step);
  const bool for_good = reason == stop_file;
  base::log::info("train", "stopped after step {} by {}; {}start again to continue", progress_.step,
                  reason_text(reason), for_good ? "remove it and " : "");
  // A job that requeues itself on 75 would find the file again, and again.
  return for_good ? base::ExitCode::done : base::ExitCode::requeue;
}

base::ExitCode Trainer::run() {
  const auto steps = config_.integer("train.steps");
  const auto eval_every = config_.integer("train.eval_every");
  while (progress_.step < steps) {
    // One vote on both: the lowest bit says that the peak has been beaten.
    const int beaten = report_->take_beaten_peak() ? 1 : 0;
    const int vote = agree_largest(*cluster_.world, 2 * stop_reason() + beaten);
    if (vote > 1) return stop_in_order(vote / 2);
    if (vote == 1) measure_peak_again();
    step();
    const bool evaluates = validation_data_ != nullptr && eval_every > 0 &&
                           (progress_.step % eval_every == 0 || progress_.step == steps);
    if (evaluates) evaluate();
    save_if_due();
  }
  if (saved_step_ != progress_.step) save();
  report_->event("done", progress_.step);
  return base::ExitCode::done;
}

}  // namespace trireme::train
