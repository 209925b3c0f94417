// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/clock_offset.hpp"
#include "trireme/config/step_range.hpp"
#include "trireme/device/gpu_activity.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include <filesystem>
#include <memory>
#include <optional>

namespace trireme::train {

/// Records what this rank does in some steps (train.profile, or `trireme profile`), and writes
/// RUN/trace/steps-100-102/rank-0003.json: all ranks together, or there is no such folder.
class Profile {
 public:
  /// With a GPU, what it does is recorded as well, if CUPTI tells it.
  enum class Gpu { none, used };
  Profile(const runtime::Cluster& cluster, const std::filesystem::path& run,
          std::optional<config::StepRange> steps, Gpu gpu)
      : cluster_(cluster), folder_(run / "trace"), steps_(steps), gpu_(gpu) {}

  /// Asks for so many steps from `next` on, on all ranks alike; what was asked for before is
  /// forgotten unless it has begun.
  void ask(std::int64_t count, std::int64_t next);
  /// Collective over all ranks if recording begins with this step.
  void before(std::int64_t step);
  /// Collective over all ranks if recording ends with this step.
  void after(std::int64_t step);
  /// Collective over all ranks if steps are being recorded: the run ends before the last of them.
  void finish();

 private:
  struct Recording {
    telemetry::SpanRecorder recorder;
    telemetry::SpanClock::time_point origin;  ///< by the clock of rank 0
    telemetry::SpanClock::time_point begin;   ///< by this rank's
    std::int64_t origin_unix_ns = 0;          ///< by rank 0's time of day
    comm::ClockOffset offset;
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    std::unique_ptr<device::GpuActivity> gpu;  ///< null where it is not recorded
    device::GpuActivity::Recorded of_gpu;
  };

  void start_gpu(Recording& recording) const;
  static void stop_gpu(Recording& recording);

  telemetry::RankTrace trace_of(const Recording& recording) const;
  void write(const telemetry::RankTrace& trace) const;

  const runtime::Cluster& cluster_;
  std::filesystem::path folder_;
  std::optional<config::StepRange> steps_;
  Gpu gpu_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace trireme::train
