// SPDX-License-Identifier: Apache-2.0
// The begin of a start: its run is opened, told and written down.
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/data/exposure.hpp"
#include "trireme/device/versions.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/train/continuation.hpp"
#include "trireme/train/trainer.hpp"

#include "train/choose_gemms.hpp"
#include "train/clock.hpp"
#include "train/evaluation.hpp"
#include "train/nonfinite_steps.hpp"
#include "train/observers.hpp"
#include "train/peak/kept_peak.hpp"
#include "train/peak/peak.hpp"
#include "train/profile.hpp"
#include "train/rank_times_recorder.hpp"
#include "train/requests.hpp"
#include "train/saving/auto_interval.hpp"
#include "train/saving/saver.hpp"
#include "train/start/fitted_options.hpp"
#include "train/start/resolved_values.hpp"
#include "train/start/setup.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

Report::Settings report_settings(const config::Config& config, double flops_per_token,
                                 const Peak& peak, bool speaks) {
  const auto& keys = config.options();
  Report::Settings settings;
  settings.directory = config::run_directory(config);
  settings.run = config::run_label(config);
  settings.steps = keys.train.steps;
  settings.log_every = keys.train.log_every;
  settings.log_interval = keys.train.log_interval;
  settings.flops_per_token = flops_per_token;
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

std::unique_ptr<data::TokenDataset> Trainer::open_data(const model::ModelConfig& model) {
  auto& world = *cluster_.world;
  training_data_ = engine::open_dataset(keys_, engine::Split::train, model, world);
  data_fingerprint_ = engine::agreed_fingerprint(*training_data_, world);
  if (keys_.train.document_mask) say_documents(*training_data_);
  if (keys_.data.validation.empty()) return nullptr;
  return engine::open_dataset(keys_, engine::Split::validation, model, world);
}

void Trainer::make_report() {
  const auto& options = engine_->options();
  const auto& cache = cluster_.cache_folder;
  kept_peak_ = std::make_unique<KeptPeak>(
      KeptPeak::Files{directory_ / "peak.json", cache.empty() ? cache : cache / "peak.json"});
  const auto peak = find_peak(config_, kernels_,
                              {options.numerics.dtype, cluster_.binding.gpu_bus_id, rank_kind()},
                              *kept_peak_, *cluster_.world);
  base::log::info("train", "{}", peak.text());
  const auto flops = model::flops_per_token(options.model, options.schedule.sequence_length);
  auto settings = report_settings(config_, flops, peak, is_first_rank());
  if (is_first_rank()) settings.predicted = predicted_step(options_, options);
  report_ = std::make_unique<Report>(settings);
}

void Trainer::load(runtime::Session& session) {
  auto& cluster = cluster_;
  auto& kernels = kernels_;
  auto& world = *cluster_.world;
  const auto model = comm::agree(world, model_from(config_));
  auto options =
      comm::agree(world, engine::options_from(config_, model, cluster.mesh, cluster.rank));
  say_attention(kernels, engine::attention_of(options), world);
  auto validation_data = open_data(model);
  const auto samples = inference::agreed_sample_task(config_, model, world);
  const auto beside = inference::decoder_beside(samples);
  options = fitted_options(options, keys_.train, beside, world);
  cluster_.start_up.reached("data");
  auto key = checkpoint::read_key_on_first_rank(keys_.checkpoint.key_file, *cluster_.world);
  resolved_ = with_values(config_, model, options.schedule, cluster.mesh);
  interval_ = agreed_interval(config_, options_.choose_interval, model, world);
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
      engine::Memory::on(arenas, engine::measure(options, beside)));
  auto groups = cluster.groups.views();
  groups.set_all_ranks(world);
  engine_ = std::make_unique<engine::Engine>(options, groups, kernels, *memory_);
  samples_ = std::make_unique<engine::ReadAhead>(training_data_, *engine_);
  std::unique_ptr<inference::Sampler> sampler;
  if (samples) {
    sampler = std::make_unique<inference::Sampler>(*samples, *engine_, groups, kernels, *memory_);
  }
  cluster_.start_up.reached("arenas");
  make_report();
  cluster_.start_up.reached("peak");
  evaluation_ = std::make_unique<Evaluation>(keys_, std::move(validation_data), std::move(sampler),
                                             *engine_, *report_);
  observers_ = std::make_unique<Observers>(
      Observers::Watched{cluster_, kernels, *engine_, *memory_, *report_});
  saver_ = std::make_unique<Saver>(
      Saver::Run{keys_, resolved_, directory_, checkpoints_, options_.tool_version, std::move(key),
                 options_.files, lock_ ? &*lock_ : nullptr, interval_.get()},
      progress_, *engine_, world, *requests_, *report_);
  restore(options_.start);
  keep_run_files(model);
  saver_->forget_later_steps();
  saver_->tidy();
  say_start(model);
  observers_->say_where();
  cluster_.start_up.reached("state");
}

/// The facts that decide how fast this rank computes, beside its device.
std::string Trainer::rank_kind() const {
  const auto& binding = cluster_.binding;
  return base::format("{}; {}; {}; {}", options_.tool_version, device::cpu_model(),
                      base::counted(binding.threads, "thread"), binding.reason);
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
  const auto minutes = interval_ ? interval_->now().minutes : keys_.checkpoint.every_minutes;
  requests_ = std::make_unique<Requests>(
      Requests::Sources{directory_, minutes, options_.limit, lock_ ? &*lock_ : nullptr});
}

void Trainer::keep_run_files(const model::ModelConfig& model) {
  comm::agree_after(*cluster_.world, [&] {
    if (!is_first_rank()) return;
    if (saver_->loaded_step()) say_changes(resolved_);
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
  const auto batch = engine_->global_batch();
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
       .stage_layers =
           engine::stage_layers(model, options.schedule, engine_->schedule().stages).counts,
       .beginning = beginning_,
       .job = job.substr(0, job.find('.'))});
  if (interval_) report_->saves_every(progress_.step, interval_->now());
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

}  // namespace trireme::train
