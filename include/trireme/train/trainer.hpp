// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/optim/curve.hpp"
#include "trireme/runtime/job_comment.hpp"
#include "trireme/runtime/run_lock.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/time_limit.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>

namespace trireme::train {

class AsyncSaves;
enum class Goal;
struct BusyThreads;
class KeptPeak;
class NonfiniteSteps;

/// Treatment of a run directory that is not empty.
enum class Start {
  resume,  ///< continue from its newest verified step
  fresh    ///< refuse it
};

class Profile;
class RankTimesRecorder;
class Requests;

/// Options of a run's start.
struct StartOptions {
  Start start = Start::resume;
  /// Time limit of the job; only the first rank needs it.
  runtime::TimeLimit limit;
  /// "trireme 0.1.0 (1a2b3c4)", for checkpoints.
  std::string tool_version;
  /// Called after each step, on every rank; must not communicate. May be empty.
  std::function<void(const StepRecord&)> on_step = {};
  /// What saves write with.
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
  /// One step: samples in, one update out.
  void step();
  /// Passes a step to the report, the job's comment and the other observers.
  void observe(const StepRecord& record);
  void observe_start_up(const StepRecord& record);
  void observe_memory();
  /// Updates, or skips the step, or ends the run, depending on loss and gradients. Returns true if
  /// it updated.
  bool update(StepRecord& record);
  /// Saves the state before the step, and throws.
  [[noreturn]] void stop_before_update(const StepRecord& record);
  /// Collective over all ranks.
  void measure_peak_again();
  /// True after steps that are followed by an evaluation.
  bool evaluation_is_due() const;
  /// Held-out loss, then samples.
  void evaluate();
  /// False if it has stopped between batches because the run is to stop: the evaluation is due
  /// again then.
  bool take_held_out_loss();
  /// Continues the prompts of train.sample_prompts, if there are any.
  void take_samples();
  /// Locks the run directory for this start, and opens it.
  void open_run(runtime::Session& session);
  /// Writes what this start makes of the run into it, after its state was loaded.
  void keep_run_files(const model::ModelConfig& model);
  /// Agrees with all ranks, between batches, on requests to stop or save.
  void ask();
  /// Everything that a checkpoint of this moment holds beside tensors.
  SavedRun to_save();
  /// Throws Error (launch) if another start, or a copy of the run, has taken over its lock or its
  /// checkpoint.directory.
  void check_ownership() const;
  void save();
  /// Saves without removing older steps: the one that is saved may be worse than they are.
  void save_without_pruning();
  bool save_is_due() const;
  /// One in the nodes' own storage, beside those in the run directory.
  bool node_save_is_due() const;
  void save_if_due();
  /// Compares the replicas (train.replica_check). If they differ, goes back to the newest
  /// checkpoint and returns false; throws if that has not helped. Collective over all ranks.
  bool replicas_agree();
  bool replica_check_is_due() const;
  /// Saves; a failure on all ranks is logged, and training goes on.
  void save_or_go_on();
  /// Begins a save that is written while training goes on, after the one before has ended.
  void start_saving(Goal goal);
  /// False if that has failed.
  bool has_started_saving(Goal goal);
  /// Takes the running save one part further if no rank is busy with it; the answer of ask() tells.
  void advance_saving();
  /// Waits until no save is running.
  void finish_saving();
  void finish_draining();
  /// What the nodes' own storage refuses goes to the run directory at once.
  void advance();
  void advance_draining();
  /// Notes the end of a part, if `record` is there; failures as not_saved() does.
  void took_part(std::int64_t step, SaveRecord::Tier tier,
                 const std::function<std::optional<SaveRecord>()>& advance);
  /// Notes a committed step.
  void saved(const SaveRecord& record);
  /// Notes that a step was not saved; throws after too many in a row.
  void not_saved(std::int64_t step, SaveRecord::Tier tier, const comm::AgreedError& error);
  /// Where the save goes that is running or was tried last.
  SaveRecord::Tier saving_tier() const;
  /// Removes the remains of killed saves, and the oldest steps except the one that this start has
  /// just saved or loaded (`newest`); failures to remove are ignored.
  void tidy(std::int64_t newest) const;
  /// Waits for a tidy() beside training: it takes the folder of a save for garbage.
  void await_tidying() const;
  bool is_tidying() const;
  /// What this rank's threads work on.
  BusyThreads busy() const;
  void restore(Start start);
  /// Brings the newest step of the nodes' own storage to the run directory, if it is newer.
  void recover_from_nodes();
  checkpoint::LoadOptions load_options() const;
  /// Logs the plan of this start.
  void say_start(const model::ModelConfig& model);
  /// How often the run will have seen its data at its last step.
  std::string exposure_text(std::int64_t batch) const;
  void say_where() const;
  /// Logs the contents of a GPU's memory, arenas and the rest separately; nothing on a host.
  void say_memory() const;
  /// Logs and records the largest use of this rank's arenas, by purpose, in bytes.
  void say_arenas() const;
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
  /// Secret that manifests are signed with, on the first rank; empty: they are not.
  std::string key_;
  /// Lock of the run, on the first rank; destroyed after all else.
  std::optional<runtime::RunLock> lock_;
  std::unique_ptr<data::TokenDataset> training_data_;
  std::unique_ptr<data::TokenDataset> validation_data_;
  /// Of the training data, as the first rank sees them.
  std::uint64_t data_fingerprint_ = 0;
  std::unique_ptr<engine::Memory> memory_;
  std::unique_ptr<engine::Engine> engine_;
  /// Of each checkpoint.
  checkpoint::Contents contents_;
  /// Null where the run has no prompts.
  std::unique_ptr<inference::Sampler> sampler_;
  std::unique_ptr<KeptPeak> kept_peak_;
  std::unique_ptr<Report> report_;
  /// Null where saves are not asynchronous; ends before what it copies from.
  std::unique_ptr<AsyncSaves> async_saves_;
  /// Tidying after the last asynchronous save, on the first rank.
  std::future<void> tidying_;
  /// In a row.
  int failed_saves_ = 0;
  optim::Curve curve_;
  Progress progress_;
  std::unique_ptr<NonfiniteSteps> nonfinite_;
  /// "goes on after step 12".
  std::string beginning_;
  /// The newest step on disk that this start has saved or loaded.
  std::int64_t saved_step_ = -1;
  /// The step of this run that this start has loaded.
  std::optional<std::int64_t> loaded_step_;
  /// The last evaluation, after this step, was among the best of the run.
  bool is_among_best_ = false;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Profile> profile_;
  std::unique_ptr<RankTimesRecorder> rank_times_;
  std::unique_ptr<runtime::JobComment> comment_;
  /// The step that differing replicas have gone back to; -1: none.
  std::int64_t went_back_to_ = -1;
  /// The first step of this start is done.
  bool started_ = false;
  /// Numbers of captured parts of steps, at the last step and at the last log line about memory.
  std::size_t graphs_seen_ = 0;
  std::size_t graphs_told_ = 0;
  /// Longest time between two calls of ask(): a step, or a batch of an evaluation.
  double longest_batch_seconds_ = 0;
  double longest_save_seconds_ = 0;
  /// Estimate that is used until a save was timed.
  double expected_save_seconds_ = 0;
};

/// Model of the configuration, with a vocabulary from the tokenizer unless another key sets it;
/// where the configuration describes none, the model of its run, or of the weights that it loads.
base::Result<model::ModelConfig> model_from(const config::Config& config);

}  // namespace trireme::train
