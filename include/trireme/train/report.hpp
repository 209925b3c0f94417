// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/device/library_memory.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/runtime/start_up.hpp"
#include "trireme/telemetry/metrics.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::train {

/// One update, as people and programs want to hear of it.
struct StepRecord {
  std::int64_t step = 0;
  double loss = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  /// Of the step, and of the run so far.
  std::int64_t step_tokens = 0;
  std::uint64_t tokens = 0;
  double seconds = 0;
  double exposed_seconds = 0;
  double bubble_seconds = 0;
  /// Whether parameters were updated; false where loss or gradients are not finite.
  bool updated = true;

  void take(const engine::ScheduleOutcome& outcome);
  void take(const engine::ReduceOutcome& outcome);
};

/// Bytes of a device on this rank.
struct MemoryRecord {
  std::string device;
  /// As planned.
  std::size_t arenas = 0;
  std::vector<device::LibraryMemory> libraries;
  /// CUDA graphs of micro-batches.
  std::size_t graphs = 0;
  /// Of all programs there, contexts among it.
  std::size_t taken = 0;

  /// The driver's context and other programs.
  std::size_t rest() const;
};

/// What a start is about to do.
struct StartRecord {
  /// "llama".
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t sequences_per_step = 0;
  std::int64_t sequence_length = 0;
  /// Prefixes of its token files.
  std::string data;
  std::int64_t first_step = 1;
  /// "begins anew", "goes on after step 12".
  std::string beginning;
};

/// What a start has done.
struct FinishRecord {
  std::int64_t steps = 0;
  std::int64_t steps_of_this_start = 0;
  std::uint64_t tokens = 0;
  /// Of this start.
  double seconds = 0;
};

/// What a save took.
struct SaveRecord {
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  /// For which training stood still, and of it for writing and commit.
  double stall_seconds = 0;
  double write_seconds = 0;
};

/// What a run says of its progress: metrics.jsonl and one clean line per log step. Rank 0 alone
/// has one that speaks.
class Report {
 public:
  struct Settings {
    std::filesystem::path directory;
    std::string run;
    std::int64_t steps = 0;
    std::int64_t log_every = 1;
    double flops_per_token = 0;
    /// Of all ranks together, and where the number comes from.
    double peak_flops = 0;
    std::string peak_source;
    /// Measured, and so too low where the machine was busy meanwhile.
    bool peak_may_be_beaten = false;
    bool speaks = false;
  };
  explicit Report(const Settings& settings);

  void started(const StartRecord& record);
  /// All steps are done.
  void finished(const FinishRecord& record);
  /// How long each part of the start took, its first step included.
  void started_up(std::int64_t step, const std::vector<runtime::StartUp::Phase>& phases);
  /// A step that beats a measured peak raises it: no run makes more than its machine can.
  void step(const StepRecord& record);
  /// The step has changed nothing (optimizer.skip_nonfinite).
  void skipped(const StepRecord& record, std::int64_t in_a_row);
  /// Whether a step has done so since the last call, the first few times.
  bool take_beaten_peak();
  /// What is larger than the peak so far becomes it.
  void raise_peak(std::int64_t step, double flops);
  void evaluated(std::int64_t step, double loss, std::int64_t tokens, double seconds);
  void saved(const SaveRecord& record);
  /// The step was not saved, and training goes on.
  void not_saved(std::int64_t step, const std::string& why);
  /// Weights from elsewhere come with step 0.
  void loaded(std::int64_t step, double seconds);
  void event(const std::string& name, std::int64_t step);
  /// What a device's memory holds: a line on each rank, and one of metrics.jsonl.
  void memory(std::int64_t step, const MemoryRecord& record);

 private:
  /// A line that the disk does not take is lost, and said to be: training goes on.
  void append(base::Json line);

  Settings settings_;
  std::int64_t restart_ = 0;
  std::optional<telemetry::MetricsFile> metrics_;
  std::int64_t lost_lines_ = 0;
  bool peak_is_beaten_ = false;
  int peaks_beaten_ = 0;
  /// Of the last evaluation of this start.
  std::optional<double> held_out_loss_;
};

}  // namespace trireme::train
