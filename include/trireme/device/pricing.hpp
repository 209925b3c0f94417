// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <memory>

namespace trireme::device {

/// Rates of a device, per second.
struct KernelRates {
  double flops = 0;
  double memory_bytes = 0;
  double launch_seconds = 0;
};

/// Does nothing but add up what operations would take: each its start, and the longer of its FLOPs
/// (GEMMs and attention) and the bytes of its operands at these rates. For comparing ways to
/// compute the same, not for predicting a step.
std::unique_ptr<Kernels> make_pricing_kernels(const KernelRates& rates, double& seconds);

}  // namespace trireme::device
