// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/runtime/job_comment.hpp"
#include "trireme/train/report.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace trireme::train {

/// Watchers of finished steps, which change no training: start-up phases, memory, the report and
/// the job's comment.
class Observers {
 public:
  /// All outlive this.
  struct Watched {
    runtime::Cluster& cluster;
    device::Kernels& kernels;
    engine::Engine& engine;
    engine::Memory& memory;
    Report& report;
  };

  explicit Observers(const Watched& watched) : watched_(watched) {}

  /// Step and loss go into the comment of the Slurm job every `interval_seconds`.
  void comment_job(const base::Environment& environment, double interval_seconds);
  /// Collective over all ranks. Tells what start-up and memory are, once they are known.
  void reached(std::int64_t step);
  /// Tells a step of so many. `skipped_in_a_row`: 0 after an update.
  void tell(const StepRecord& record, std::int64_t steps, std::int64_t skipped_in_a_row);
  /// The first step of this start is done.
  bool started() const { return started_; }
  /// Logs where this rank computes, in its own log file.
  void say_where() const;
  /// Logs and records the largest use of this rank's arenas, by purpose, in bytes.
  void say_arenas(std::int64_t step) const;

 private:
  void start_up(std::int64_t step);
  void memory(std::int64_t step);
  /// Logs the contents of a GPU's memory, arenas and the rest separately; nothing on a host.
  void say_memory(std::int64_t step) const;

  Watched watched_;
  std::unique_ptr<runtime::JobComment> comment_;
  bool started_ = false;
  /// Numbers of captured parts of steps, at the last step and at the last log line about memory.
  std::size_t graphs_seen_ = 0;
  std::size_t graphs_told_ = 0;
};

}  // namespace trireme::train
