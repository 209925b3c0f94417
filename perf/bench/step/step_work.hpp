// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <functional>
#include <string>
#include <vector>

namespace trireme::bench {

/// One kernel call of a training step of GPT-2 124M.
struct Call {
  /// "products", "attention", "norms", "activations", "cross-entropy", "optimizer"…
  std::string phase;
  std::string name;
  /// How often a step makes it.
  int times = 1;
  /// Multiplications and additions of one call, or 0 for what memory bounds.
  double operations = 0;
  std::function<void()> run;
};

/// All kernel calls of a step over `batch` sequences of `seq` tokens: parameters and activations of
/// one type, gradients and optimizer state in fp32, full vocabulary, clipping and AdamW.
std::vector<Call> step_calls(device::Kernels& kernels, device::Arena& arena, device::DType dtype,
                             std::int64_t batch, std::int64_t seq);

}  // namespace trireme::bench
