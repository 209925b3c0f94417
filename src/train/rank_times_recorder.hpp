// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/runtime/cluster.hpp"
#include "trireme/train/report.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::train {

/// Writes RUN/ranks.json: for how long each rank computes in a step, so that people see the slowest
/// ones. A gathering of eight bytes a rank twice a minute: 80 kB of ten thousand ranks. It is asked
/// for with the question that all ranks answer before each step, so that no rank waits longer for
/// another than it does there.
class RankTimesRecorder {
 public:
  RankTimesRecorder(const runtime::Cluster& cluster, std::filesystem::path run)
      : cluster_(cluster), run_(std::move(run)) {}

  /// A step of this rank; the first one of a start does not count.
  void add(const StepRecord& record);
  /// By this rank's clock: the first time after a few steps.
  bool are_due() const;
  /// Collective over all ranks. Host-blocking: yes. Without effect if no step counts. A file that
  /// cannot be written is warned of once.
  void record(std::int64_t restart);

 private:
  using Clock = std::chrono::steady_clock;

  void gather_nodes();

  const runtime::Cluster& cluster_;
  std::filesystem::path run_;
  /// Names by node rank, on all ranks from the first gathering on.
  std::vector<std::string> nodes_;
  Clock::time_point recorded_ = {};
  double seconds_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t last_step_ = 0;
  bool has_failed_ = false;
};

}  // namespace trireme::train
