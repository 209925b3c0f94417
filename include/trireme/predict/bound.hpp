// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/time.hpp"
#include "trireme/predict/workload.hpp"

#include <memory>

namespace trireme::predict {

/// Times that predict_step() never falls below, a thousand times faster: each stage computes all
/// micro-batches, behind the first's way to it and before the last's way back, and moves all of its
/// gradients and parameters. Not for two threads at a time.
class LowerBounds {
 public:
  /// The machine must live as long.
  explicit LowerBounds(const Machine& machine);
  ~LowerBounds();
  LowerBounds(const LowerBounds&) = delete;
  LowerBounds& operator=(const LowerBounds&) = delete;

  /// Zero for what predict_step() refuses. All workloads have one shape, and programs that differ
  /// in what is computed again, sequence parallelism, sharding and FLOPs of updates alone.
  Time of(const Workload& workload);
  /// Rate of a layer's products over that of large ones in the same precision.
  double product_share(const Workload& workload);

 private:
  struct Priced;
  std::unique_ptr<Priced> priced_;
};

}  // namespace trireme::predict
