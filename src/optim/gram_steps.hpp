// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/newton_schulz.hpp"

#include <cstdint>
#include <vector>

namespace trireme::optim {

/// Consecutive steps of an iteration, between two products with X.
struct StepRun {
  int first = 0;
  int steps = 1;
};
/// All of an iteration, in the form of this shape.
std::vector<StepRun> runs_of(const NewtonSchulz& rule, const ownership::MatrixShape& shape);

/// Memory of a batch's work on [n, n] matrices: [count, n, n] each.
struct GramMemory {
  device::Tensor r;  // X X^T, for the caller to fill
  device::Tensor s;
  device::Tensor t;  // of runs of two steps alone

  GramMemory(device::Arena& workspace, device::DType products, std::int64_t count, std::int64_t n,
             const std::vector<StepRun>& runs);
};

/// Factor that a run multiplies X by: X <- (a I + q) X.
struct GramFactor {
  device::Tensor q;  // [count, n, n], in memory's
  float a = 0;
};
GramFactor gram_factor(device::Kernels& kernels, const NewtonSchulz& rule, const GramMemory& memory,
                       const StepRun& run);
/// Its `a` alone.
float constant_of(const NewtonSchulz& rule, const StepRun& run);

}  // namespace trireme::optim
