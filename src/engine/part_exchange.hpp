// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/telemetry/spans.hpp"

#include <utility>

namespace trireme::engine {

/// Brings matrices together whose parts lie on tensor-parallel ranks. Ranks own the matrices of a
/// micro-group in turn: one all-to-all brings an owner the parts of its matrices, one brings back
/// the parts of what it made of them.
class PartExchange final : public optim::PartExchange {
 public:
  explicit PartExchange(comm::ProcessGroup& tensor) : tensor_(tensor) {}

  int ranks() const override { return tensor_.size(); }
  int rank() const override { return tensor_.rank(); }
  /// Collective over the group. Host-blocking: no, on a device. Ordered on: its stream.
  void gather(device::Kernels& kernels, const optim::MicroGroup& group) override;
  void scatter(device::Kernels& kernels, const optim::MicroGroup& group) override;

  /// Times of exchanges since the last call.
  UpdateOutcome take_times() { return std::exchange(times_, {}); }

 private:
  void exchange(const device::Tensor& from, const device::Tensor& to);

  comm::ProcessGroup& tensor_;
  UpdateOutcome times_;
};

/// Seconds from then until now.
double seconds_since(telemetry::SpanClock::time_point begin);

}  // namespace trireme::engine
