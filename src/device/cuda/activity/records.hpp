// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/gpu_activity.hpp"

#include <cupti.h>

#include <functional>
#include <unordered_map>

namespace trireme::device::cuda {

/// CUPTI's activity records, in the order in which they come, as events of a trace.
class ActivityRecords {
 public:
  /// Name of a function of the runtime or the driver by its number; may be empty.
  using CallName = std::function<std::string(CUpti_ActivityKind, CUpti_CallbackId)>;
  /// Nanoseconds of the spans' clock for a time of CUPTI's.
  using Clock = std::function<std::int64_t(std::uint64_t)>;

  explicit ActivityRecords(CallName call_name) : call_name_(std::move(call_name)) {}

  /// Takes a record; kinds that were not asked for are passed over.
  void take(const CUpti_Activity& record);
  void lost(std::uint64_t count) { left_out_ += count; }

  /// Events ascending by their begins, each with the span that it was issued in. Calls that have
  /// issued nothing are left out, and so is the driver's call within the runtime's. Records without
  /// times (the device was reset) are counted as left out.
  GpuActivity::Recorded finish(const Clock& clock) &&;

 private:
  struct Raw {
    telemetry::GpuEvent event;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  void add(Raw raw);
  void take_call(const CUpti_ActivityAPI& call, CUpti_ActivityKind kind);

  CallName call_name_;
  std::vector<Raw> work_;
  /// By correlation; the runtime's rather than the driver's.
  std::unordered_map<std::uint64_t, Raw> calls_;
  /// Serials of spans by correlation.
  std::unordered_map<std::uint64_t, std::uint64_t> spans_;
  std::uint64_t left_out_ = 0;
};

}  // namespace trireme::device::cuda
