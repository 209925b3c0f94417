#pragma once

#include "trireme/base/exit_code.hpp"
#include "trireme/config/config.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/optim/curve.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/runtime/job_comment.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include <chrono>
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

/// The step loop of one rank: samples in, updates out, with evaluation, checkpoints and an orderly
/// stop at the step that all ranks agree on.
class Trainer {
 public:
  /// Collective over all ranks. Reads data and model, plans and takes memory, loads or
  /// initialises. Users' mistakes end on all ranks with one text. `job_end`, which only the first
  /// rank needs to know, is when the job's time limit ends it.
  Trainer(const config::Config& config, runtime::Cluster& cluster, device::Kernels& kernels,
          Start start, std::optional<std::chrono::steady_clock::time_point> job_end = {});
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
  void step();
  /// Updates, or skips the step, or ends the run, as loss and gradients ask for. Whether it
  /// updated.
  bool update(const StepRecord& record);
  /// Keeps what was before the step, and throws.
  [[noreturn]] void stop_before_update(const StepRecord& record);
  /// Collective over all ranks.
  void measure_peak_again();
  void evaluate();
  void save();
  /// Older steps stay: the one that is saved may have led astray already.
  void save_without_pruning();
  void save_if_due();
  /// A save that fails on all ranks alike is said aloud, and training goes on.
  void save_or_go_on();
  /// Removes the oldest steps; what cannot be removed stays.
  void prune() const;
  void restore(Start start);
  /// 0, the signal that came, time_limit or stop_file.
  int stop_reason();
  /// Somebody has made a file STOP in the run directory; asked at most once a second.
  bool finds_stop_file();
  void say_where() const;
  /// What a card's memory holds, arenas and the rest apart; nothing on a host.
  void say_memory() const;
  base::ExitCode stop_in_order(int reason);
  /// The time before the limit at which the run must begin to stop.
  double lead_seconds() const;
  bool is_first_rank() const { return cluster_.rank.value() == 0; }

  const config::Config& config_;
  /// With values where config_ has `auto`: what the run writes down of itself.
  config::Config resolved_;
  runtime::Cluster& cluster_;
  device::Kernels& kernels_;
  std::filesystem::path directory_;
  std::unique_ptr<data::TokenDataset> training_data_;
  std::unique_ptr<data::TokenDataset> validation_data_;
  std::unique_ptr<engine::Memory> memory_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<Report> report_;
  optim::Curve curve_;
  Progress progress_;
  std::unique_ptr<NonfiniteSteps> nonfinite_;
  std::int64_t saved_step_ = -1;
  std::chrono::steady_clock::time_point saved_at_;
  std::optional<std::chrono::steady_clock::time_point> job_end_;
  std::optional<std::chrono::steady_clock::time_point> looked_for_stop_;
  std::unique_ptr<runtime::JobComment> comment_;
  /// The first step of this start is done.
  bool started_ = false;
  /// Parts of steps that were recorded, as of the last step and as of the last word on memory.
  std::size_t recordings_seen_ = 0;
  std::size_t recordings_told_ = 0;
  double longest_step_seconds_ = 0;
  double longest_save_seconds_ = 0;
};

/// The model that the configuration describes, with a vocabulary from the tokenizer when nothing
/// else names one; where it describes none, that of its run, or of the weights that it loads.
base::Result<model::ModelConfig> model_from(const config::Config& config);

}  // namespace trireme::train
