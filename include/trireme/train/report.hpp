// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/runtime/start_up.hpp"
#include "trireme/telemetry/cores_use.hpp"
#include "trireme/telemetry/metrics.hpp"
#include "trireme/telemetry/predicted_step.hpp"
#include "trireme/telemetry/run_record.hpp"
#include "trireme/train/save_interval.hpp"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::inference {
struct HeldOutLoss;
}

namespace trireme::train {

/// Data of one update, for log and metrics: the numbers of its line, absent where they are not
/// measured, and what else there is of it. The report adds tokens_per_second and mfu.
struct StepRecord : telemetry::StepLine {
  std::int64_t step_tokens = 0;
  /// Global index of the step's first sample.
  std::uint64_t first_sample = 0;
  /// [stage]; the line's own has less precision.
  std::vector<double> stage_bubble_seconds = {};
  engine::UpdateOutcome update = {};
  /// False if parameters were not updated, because loss or gradients are not finite.
  bool updated = true;

  double seconds() const { return step_ms / 1e3; }
  /// The step without waiting and communication, as far as they are measured: what tells slow ranks
  /// from those that wait for them.
  double computing_seconds() const;
  /// Fields of the line that are no single numbers, by name.
  base::Json others() const;

  void take(const engine::ScheduleOutcome& outcome);
  void take(const engine::ReduceOutcome& outcome);
};

/// Bytes of a device on this rank.
struct MemoryRecord {
  std::string device;
  /// Arenas, as planned.
  std::size_t arenas = 0;
  std::vector<device::LibraryMemory> libraries;
  /// CUDA graphs of micro-batches.
  std::size_t graphs = 0;
  /// Memory taken by all programs on the device, with their contexts.
  std::size_t taken = 0;

  /// The driver's context and other programs.
  std::size_t rest() const;
};

/// Plan of a start.
struct StartRecord {
  /// "llama".
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t sequences_per_step = 0;
  std::int64_t sequence_length = 0;
  /// Prefixes of its token files, and how often the run sees them.
  std::string data;
  std::string exposure;
  std::int64_t first_step = 1;
  /// Traffic of the first rank's groups in a step, and layers of each position of the model.
  engine::StepTraffic traffic = {};
  std::vector<int> stage_layers = {};
  /// "begins anew", "goes on after step 12".
  std::string beginning;
  /// Slurm's job number; empty outside of one.
  std::string job;
};

/// Totals of a start at its end.
struct FinishRecord {
  std::int64_t steps = 0;
  std::int64_t steps_of_this_start = 0;
  std::uint64_t tokens = 0;
  /// Duration of this start.
  double seconds = 0;
};

/// A state that was loaded.
struct LoadRecord {
  std::int64_t step = 0;
  /// Time of the whole, and of reading and exchanging.
  double seconds = 0;
  double read_seconds = 0;
  /// By all ranks; 0 where it is not known.
  std::uint64_t read_bytes = 0;
  /// Largest of all ranks: bytes read over those of the rank's boxes.
  double read_ratio = 0;
};

/// Texts that the model has made after an evaluation.
struct SampleRecord {
  std::int64_t step = 0;
  const inference::SampleTask& task;
  /// In the order of the task's prompts.
  const std::vector<inference::Answer>& answers;
  double seconds = 0;
};

/// Cost of a save.
struct SaveRecord {
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  /// Time that training was blocked.
  double stall_seconds = 0;
  /// Time from the first agreement to the commit, in the background or not.
  double write_seconds = 0;
  bool asynchronous = false;
  enum class Tier {
    shared,  ///< the run directory
    nodes    ///< checkpoint.local_directory
  };
  Tier tier = Tier::shared;
};

class StepLines;

/// Report of a run's progress: metrics.jsonl, and the lines of the log that tell of steps. Only
/// rank 0 has one that writes.
class Report {
 public:
  struct Settings {
    std::filesystem::path directory;
    std::string run;
    std::int64_t steps = 0;
    std::int64_t log_every = 1;
    /// Seconds between two lines off a terminal, at least.
    double log_interval = 10;
    double flops_per_token = 0;
    /// Peak of all ranks together, and its source.
    double peak_flops = 0;
    std::string peak_source;
    /// True if the peak was measured, and may be too low because the machine was busy meanwhile.
    bool peak_may_be_beaten = false;
    /// A step of this start, where the run names its machine.
    std::optional<telemetry::PredictedStep> predicted = {};
    bool speaks = false;
  };
  explicit Report(const Settings& settings);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report();

  /// How many starts there were before this one; 0 where the report does not speak.
  std::int64_t restart() const { return restart_; }

  void started(const StartRecord& record);
  /// Records that all steps are done.
  void finished(const FinishRecord& record);
  /// Records the time of each phase of the start, its first step included.
  void started_up(std::int64_t step, const std::vector<runtime::StartUp::Phase>& phases);
  /// Records what became of the cores of some ranks since the last time.
  void processors(std::int64_t step, const telemetry::CoresUse& use);
  /// Records a step. One that beats a measured peak raises it: no run can exceed its machine's
  /// peak.
  void step(StepRecord record);
  /// Records a step that has changed nothing (optimizer.skip_nonfinite).
  void skipped(const StepRecord& record, std::int64_t in_a_row);
  /// True if a step has beaten the peak since the last call; limited to the first few times.
  bool take_beaten_peak();
  /// Raises the peak to `flops` if that is larger; says so the first time. Returns the peak.
  double raise_peak(std::int64_t step, double flops);
  void evaluated(std::int64_t step, const inference::HeldOutLoss& found, double seconds);
  void sampled(const SampleRecord& record);
  void saved(const SaveRecord& record);
  /// Records a failed save, after which training goes on.
  void not_saved(std::int64_t step, SaveRecord::Tier tier, const std::string& why);
  /// Records the interval between saves by the clock that was chosen.
  void saves_every(std::int64_t step, const SaveInterval& interval);
  /// Records that replicas differed after `step`, and that training goes on after step `to`.
  void went_back(std::int64_t step, std::int64_t to, const std::string& why);
  /// Records that a step was loaded; step 0: weights.
  void loaded(const LoadRecord& record);
  /// Records an orderly stop, after so many steps of this start.
  void stopped(std::int64_t step, std::int64_t steps);
  /// Records the contents of a device's memory: a line on each rank, and one of metrics.jsonl.
  void memory(std::int64_t step, const MemoryRecord& record);
  /// Records the first rank's arenas: what was planned, and the largest use so far.
  void arenas(std::int64_t step, const engine::MemoryUse& planned, const engine::MemoryUse& used);

 private:
  /// Appends a line; one that cannot be written is lost and logged: training goes on.
  void append(base::Json line);

  Settings settings_;
  std::int64_t restart_ = 0;
  std::optional<telemetry::MetricsFile> metrics_;
  /// Null where the report does not speak.
  std::unique_ptr<StepLines> lines_;
  telemetry::MeasuredStep measured_;
  std::int64_t lost_lines_ = 0;
  bool peak_is_beaten_ = false;
  int peaks_beaten_ = 0;
  /// Consecutive measurements in which something kept ranks from their cores.
  int hindered_ = 0;
  bool hindrance_is_told_ = false;
  /// Loss of the last evaluation of this start.
  std::optional<double> held_out_loss_;
};

}  // namespace trireme::train
