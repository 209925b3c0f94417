// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/forwarding_kernels.hpp"

#include <cstdint>

namespace trireme::testing {

/// Counts what is issued.
class CountingKernels final : public ForwardingKernels {
 public:
  CountingKernels() : ForwardingKernels(device::make_reference_kernels()) {}

  void compute(const device::Operation& operation) override {
    ++issued;
    ForwardingKernels::compute(operation);
  }

  std::int64_t issued = 0;
};

}  // namespace trireme::testing
