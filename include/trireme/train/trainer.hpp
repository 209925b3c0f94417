// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/optim/curve.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/time_limit.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"
#include "trireme/train/save_interval.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace trireme::train {

class AutoInterval;
class Evaluation;
class KeptPeak;
class NonfiniteSteps;
class Observers;
class Profile;
class RankTimesRecorder;
class Requests;
class Saver;

/// Treatment of a run directory that is not empty.
enum class Start {
  resume,  ///< continue from its newest verified step
  fresh    ///< refuse it
};

/// Options of a run's start.
struct StartOptions {
  Start start = Start::resume;
  /// Time limit of the job; only the first rank needs it.
  runtime::TimeLimit limit;
  /// "trireme 0.1.0 (1a2b3c4)", for checkpoints.
  std::string tool_version;
  /// Called after each step, on every rank; must not communicate. May be empty.
  std::function<void(const StepRecord&)> on_step = {};
  /// Predicts a step of these options, on the first rank; must not communicate. May be empty; a
  /// failure is logged, and nothing is predicted.
  std::function<base::Result<telemetry::PredictedStep>(const engine::EngineOptions&)> predict = {};
  /// Chooses the interval between saves where checkpoint.every_minutes is auto, which is refused
  /// without it.
  ChooseInterval choose_interval = {};
  /// The file system that saves write with.
  checkpoint::FileSystem& files = checkpoint::FileSystem::system();
};

/// Step loop of one rank: samples in, updates out, with evaluation, checkpoints and an orderly stop
/// at the step that all ranks agree on.
class Trainer {
 public:
  /// Collective over all ranks. Reads data and model, plans and allocates memory, loads or
  /// initialises. Users' mistakes end on all ranks with one text, before the run directory is
  /// touched; so does a directory that another start holds (AgreedError, launch).
  Trainer(const config::Config& config, runtime::Session& session, StartOptions options = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Collective over all ranks. Trains until the last step, or until a signal (while a StopSignal
  /// lives) or the time limit requires a stop: ExitCode::requeue, after a save.
  base::ExitCode run();

  /// Enables step and loss in the comment of the Slurm job (run.job_comment). To be called before
  /// run(); does nothing outside of a job, and on all ranks but the first.
  void comment_job(const base::Environment& environment);

 private:
  /// Reads data and model, plans and allocates memory, loads or initialises.
  void load(runtime::Session& session);
  /// Opens the training data; returns held-out data, or nothing where there are none.
  std::unique_ptr<data::TokenDataset> open_data(const model::ModelConfig& model);
  /// Measures or takes over the peak, against which the report counts.
  void make_report();
  /// Locks the run directory for this start, and opens it.
  void open_run(runtime::Session& session);
  void restore(Start start);
  /// Continues from what a checkpoint says beside tensors.
  void go_on_from(const Progress& progress);
  /// Writes what this start makes of the run into it, after its state was loaded.
  void keep_run_files(const model::ModelConfig& model);
  /// Logs the plan of this start.
  void say_start(const model::ModelConfig& model);
  /// How often the run will have seen its data at its last step.
  std::string exposure_text(std::int64_t batch) const;

  /// Agrees with all ranks, between batches, on requests to stop or save.
  void ask();
  /// One step: samples in, one update out.
  void step();
  /// Updates, or skips the step, or ends the run, depending on loss and gradients. Returns true if
  /// it updated.
  bool update(StepRecord& record);
  /// Saves the state before the step, and throws.
  [[noreturn]] void stop_before_update(const StepRecord& record);
  /// Passes a step to those who look at it.
  void observe(const StepRecord& record);
  void evaluate();
  /// Compares the replicas (train.replica_check). If they differ, goes back to the newest
  /// checkpoint and returns false; throws if that has not helped. Collective over all ranks.
  bool replicas_agree();
  bool replica_check_is_due() const;
  /// Collective over all ranks.
  void measure_peak_again();
  std::string rank_kind() const;
  /// After so many steps of this start.
  base::ExitCode stop_in_order(std::int64_t steps);
  /// Fails (launch) on all ranks: a start that cannot make a step must not be requeued.
  void refuse_short_limit();
  /// The time before the limit at which the run must begin to stop.
  double lead_seconds() const;
  bool is_first_rank() const { return cluster_.rank.value() == 0; }

  /// With what the run keeps from its earlier starts.
  const config::Config config_;
  const config::Options& keys_;
  /// Configuration with values in place of `auto`: the run stores it.
  config::Config resolved_;
  runtime::Cluster& cluster_;
  device::Kernels& kernels_;
  std::filesystem::path directory_;
  /// Where the steps are.
  std::filesystem::path checkpoints_;
  StartOptions options_;
  /// Lock of the run, on the first rank; destroyed after all else.
  std::optional<record::RunLock> lock_;
  /// Shared with the thread that reads samples ahead.
  std::shared_ptr<const data::TokenDataset> training_data_;
  /// Fingerprint of the training data, as the first rank sees them.
  std::uint64_t data_fingerprint_ = 0;
  std::unique_ptr<engine::Memory> memory_;
  std::unique_ptr<engine::Engine> engine_;
  /// Samples of the training data; end before the engine does.
  std::unique_ptr<engine::ReadAhead> samples_;
  std::unique_ptr<KeptPeak> kept_peak_;
  std::unique_ptr<Report> report_;
  optim::Curve curve_;
  Progress progress_;
  std::unique_ptr<NonfiniteSteps> nonfinite_;
  /// "goes on after step 12".
  std::string beginning_;
  /// Null but on the first rank, and where minutes are given.
  std::unique_ptr<AutoInterval> interval_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<RankTimesRecorder> rank_times_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<Observers> observers_;
  /// The step that differing replicas have gone back to; -1: none.
  std::int64_t went_back_to_ = -1;
  /// Longest time between two calls of ask(): a step, or a batch of an evaluation.
  double longest_batch_seconds_ = 0;
  /// Ends before what it saves.
  std::unique_ptr<Saver> saver_;
};

/// Model of the configuration, with a vocabulary from the tokenizer unless another key sets it;
/// where the configuration describes none, the model of its run, or of the weights that it loads.
base::Result<model::ModelConfig> model_from(const config::Config& config);

}  // namespace trireme::train
