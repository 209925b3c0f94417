// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/optim/state.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace trireme::optim {

/// Groups of ranks that an update of matrices needs; they outlive the optimizer.
struct Peers {
  /// Ranks that hold other parts of matrices, if any do. Then update() is collective over it.
  comm::ProcessGroup* exchange = nullptr;
  /// Group of SharedMatrix::Share::rank, where there is a shared matrix.
  comm::ProcessGroup* sharing = nullptr;
};

/// Where the computing thread's time in exchanges of parts went.
struct ExchangeTimes {
  double gather_seconds = 0;   ///< parts of matrices to their owners
  double scatter_seconds = 0;  ///< parts of their directions back
  double exposed_seconds = 0;  ///< waits for messages in both
};

/// Update rules over the part of the flat buffers that a rank owns: element by element, and of
/// whole matrices.
class Optimizer {
 public:
  /// Arguments are those of OptimizerState; `arena` is the device's. With `offload` state lies in
  /// its homes: not for rules that update matrices.
  Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
            const FlatValues& parameters, device::Arena& arena, const Peers& peers = {},
            const std::optional<StateOffload>& offload = std::nullopt);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) = delete;

  /// One update from reduced gradients (f32). `step` counts updates (from 1). `workspace`
  /// lends room for the matrices of a batch.
  void update(device::Kernels& kernels, device::Arena& workspace, const FlatValues& gradients,
              float learning_rate, float gradient_scale, std::int64_t step);
  /// Makes parameters what the masters are, after initialisation or loading, of states too.
  void state_changed(device::Kernels& kernels, std::int64_t step);
  const OptimizerState& state() const;
  /// Calls act with values of the state where the device's kernels reach them: of those whose home
  /// is host memory with a part at a time, as many elements of each, which lasts until act returns.
  void read(const device::Tensor& values,
            const std::function<void(const device::Tensor&)>& act) const;
  /// Times since the last call.
  ExchangeTimes take_exchange_times();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::optim
