// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/telemetry/gpu_event.hpp"
#include "trireme/telemetry/spans.hpp"

#include <cstdint>
#include <memory>
#include <vector>

/// A run as NVIDIA's tools see it, and its GPU as they tell of it.
namespace trireme::device {

/// Records what this process's GPU does (kernels, copies, and the calls that have issued them), by
/// CUPTI's activity records. Each carries the serial of the span in which this thread issued it.
class GpuActivity {
 public:
  struct Recorded {
    /// Times since the epoch of telemetry::SpanClock; ascending.
    std::vector<telemetry::GpuEvent> events;
    /// That CUPTI had no room for, or there were too many of.
    std::uint64_t left_out = 0;
  };
  /// Largest number of events; those behind are counted and left out.
  static constexpr std::size_t most_events = std::size_t{1} << 20;

  virtual ~GpuActivity() = default;
  /// Ends the recording, and waits for what is recorded of work that is done. Once. Throws Error
  /// (topology).
  virtual Recorded stop() = 0;
};

/// Begins to record; one at a time in a process. Spans of this thread are observed until it is
/// stopped. Failures (topology): this build or this machine has no CUPTI, or another tool uses it.
base::Result<std::unique_ptr<GpuActivity>> start_gpu_activity();

/// Shows spans as NVTX ranges of domain "trireme" to the tool that has started the program (Nsight
/// Systems); tells `next`, if there is one. Without a tool a range costs a call. Null if this build
/// has no NVTX.
std::unique_ptr<telemetry::SpanObserver> make_nvtx_ranges(telemetry::SpanObserver* next = nullptr);

}  // namespace trireme::device
