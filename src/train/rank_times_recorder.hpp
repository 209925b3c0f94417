// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/runtime/cluster.hpp"
#include "trireme/telemetry/processor_time.hpp"
#include "trireme/telemetry/rank_times.hpp"
#include "trireme/train/report.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::train {

/// Writes RUN/ranks.json: for how long each rank computes in a step, so that people see the slowest
/// ones; and reports of the cores that ranks were kept from most. Twice a minute each rank sends 20
/// bytes along a tree, 200 kB of ten thousand ranks, and the first one of a node four for each of
/// its cores, after it has read a file. It is asked for with the question that all ranks answer
/// before each step, so that no rank waits longer for another than it does there.
class RankTimesRecorder {
 public:
  RankTimesRecorder(const runtime::Cluster& cluster, std::filesystem::path run);

  /// A step of this rank; the first one of a start does not count.
  void add(const StepRecord& record);
  /// By this rank's clock: the first time after a few steps.
  bool are_due() const;
  /// Collective over all ranks. Host-blocking: yes. Without effect if no step counts. A file that
  /// cannot be written is warned of once.
  void record(Report& report);

 private:
  using Clock = std::chrono::steady_clock;

  /// Message of a rank, as bytes.
  struct Message;

  void gather_places();
  void write(const telemetry::RankTimes& times);
  /// On the first rank.
  void report_cores(const std::vector<Message>& messages, Report& report) const;

  const runtime::Cluster& cluster_;
  std::filesystem::path run_;
  /// First of its node.
  bool is_first_;
  telemetry::ProcessorMeter processors_;
  bool knows_places_ = false;
  /// Names by node rank, and cores by rank, on the first rank from the first gathering on.
  std::vector<std::string> nodes_;
  std::vector<std::vector<int>> cores_;
  Clock::time_point recorded_ = {};
  double seconds_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t last_step_ = 0;
  bool has_failed_ = false;
};

}  // namespace trireme::train
