// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/optim/part_exchange.hpp"
#include "trireme/telemetry/spans.hpp"

#include <deque>
#include <utility>

namespace trireme::engine {

/// Brings matrices together whose parts lie on tensor-parallel ranks: one all-to-all brings the
/// owners in a micro-group the parts of their matrices, one brings back the parts of what they made
/// of them.
class PartExchange final : public optim::PartExchange {
 public:
  explicit PartExchange(comm::ProcessGroup& tensor) : tensor_(tensor) {}

  int ranks() const override { return tensor_.size(); }
  int rank() const override { return tensor_.rank(); }
  // Collective over the group. Host-blocking: no, on a device. Ordered on: its stream.

  void start_gather(const optim::MicroGroup& group) override;
  void finish_gather(device::Kernels& kernels, const optim::MicroGroup& group) override;
  void start_scatter(device::Kernels& kernels, const optim::MicroGroup& group) override;
  void finish_scatter(const optim::MicroGroup& group) override;
  void poll() override;

  /// Times of exchanges since the last call.
  UpdateOutcome take_times() { return std::exchange(times_, {}); }

 private:
  void start(const device::Tensor& from, const device::Tensor& to);
  /// End of the exchange that started first.
  void finish();

  comm::ProcessGroup& tensor_;
  std::deque<comm::Work> under_way_;
  UpdateOutcome times_;
};

/// Seconds from then until now.
double seconds_since(telemetry::SpanClock::time_point begin);

}  // namespace trireme::engine
