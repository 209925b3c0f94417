// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/exit_code.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/optim/curve.hpp"
#include "trireme/runtime/job_comment.hpp"
#include "trireme/runtime/run_lock.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/time_limit.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace trireme::train {

class NonfiniteSteps;

/// What to do with a run directory that has something in it.
enum class Start {
  resume,  ///< go on from its newest verified step
  fresh    ///< refuse it
};

class Requests;

/// How a run is started.
struct StartOptions {
  Start start = Start::resume;
  /// Of the job; the first rank alone needs it.
  runtime::TimeLimit limit;
  /// "trireme 0.1.0 (1a2b3c4)", for checkpoints.
  std::string tool_version;
};

/// The step loop of one rank: samples in, updates out, with evaluation, checkpoints and an orderly
/// stop at the step that all ranks agree on.
class Trainer {
 public:
  /// Collective over all ranks. Reads data and model, plans and takes memory, loads or
  /// initialises. Users' mistakes end on all ranks with one text, before the run directory is
  /// touched; so does a directory that another start holds (AgreedError, launch).
  Trainer(const config::Config& config, runtime::Session& session, StartOptions options = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Collective over all ranks. Until the last step, or until a signal (while a StopSignal lives)
  /// or the nearing time limit asks to stop: ExitCode::requeue, after a save.
  base::ExitCode run();

  /// From now on step and loss go into the comment of the Slurm job (run.job_comment). To be called
  /// before run(); does nothing outside of a job, and on all ranks but the first.
  void comment_job(const base::Environment& environment);

 private:
  /// One step: samples in, one update out.
  void step();
  /// Tells everything that follows a step of it.
  void observe(const StepRecord& record);
  void observe_start_up(const StepRecord& record);
  void observe_memory();
  /// Updates, or skips the step, or ends the run, as loss and gradients ask for. Whether it
  /// updated.
  bool update(const StepRecord& record);
  /// Keeps what was before the step, and throws.
  [[noreturn]] void stop_before_update(const StepRecord& record);
  /// Collective over all ranks.
  void measure_peak_again();
  /// Stops between batches when the run is asked to stop: the evaluation is due again then.
  void evaluate();
  /// Takes the run directory for this start.
  void open_run(runtime::Session& session, const model::ModelConfig& model);
  /// Whether somebody asks the run to stop; asked together, between batches.
  void ask();
  void save();
  /// Older steps stay: the one that is saved may have led astray already.
  void save_without_pruning();
  void save_if_due();
  /// A save that fails on all ranks alike is said aloud, and training goes on.
  void save_or_go_on();
  /// Removes what killed saves have left, and the oldest steps but for the one that this start
  /// has just saved or loaded; what cannot be removed stays.
  void tidy() const;
  void restore(Start start);
  /// What this start is about to do.
  void say_start(const model::ModelConfig& model);
  void say_where() const;
  /// What a GPU's memory holds, arenas and the rest apart; nothing on a host.
  void say_memory() const;
  /// What the arenas of this rank held at most, by purpose, in bytes.
  void say_arenas() const;
  base::ExitCode stop_in_order();
  /// The time before the limit at which the run must begin to stop.
  double lead_seconds() const;
  bool is_first_rank() const { return cluster_.rank.value() == 0; }

  const config::Config& config_;
  const config::Options& keys_;
  /// With values where config_ has `auto`: what the run writes down of itself.
  config::Config resolved_;
  runtime::Cluster& cluster_;
  device::Kernels& kernels_;
  std::filesystem::path directory_;
  StartOptions options_;
  /// On the first rank; given back when all else is gone.
  std::optional<runtime::RunLock> lock_;
  std::unique_ptr<data::TokenDataset> training_data_;
  std::unique_ptr<data::TokenDataset> validation_data_;
  std::unique_ptr<engine::Memory> memory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Report> report_;
  optim::Curve curve_;
  Progress progress_;
  std::unique_ptr<NonfiniteSteps> nonfinite_;
  /// "goes on after step 12".
  std::string beginning_;
  /// The newest step on disk that this start has saved or loaded.
  std::int64_t saved_step_ = -1;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<runtime::JobComment> comment_;
  /// The first step of this start is done.
  bool started_ = false;
  /// Parts of steps that were captured, as of the last step and as of the last word on memory.
  std::size_t graphs_seen_ = 0;
  std::size_t graphs_told_ = 0;
  /// Between two looks at what is asked: a step, or a batch of an evaluation.
  double longest_batch_seconds_ = 0;
  double longest_save_seconds_ = 0;
  /// As long as no save was seen.
  double expected_save_seconds_ = 0;
};

/// The model that the configuration describes, with a vocabulary from the tokenizer when nothing
/// else names one; where it describes none, that of its run, or of the weights that it loads.
base::Result<model::ModelConfig> model_from(const config::Config& config);

}  // namespace trireme::train
