// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"

#include "support/forwarding_kernels.hpp"

#include <cstdint>

namespace trireme::testing {

/// Counts what is issued.
class CountingKernels final : public ForwardingKernels {
 public:
  CountingKernels() : ForwardingKernels(device::make_reference_kernels()) {}

  void compute(const device::Operation& operation) override {
    if (issued == fails_at) {
      failed = true;
      throw base::Error(base::ExitCode::internal, "a kernel has failed");
    }
    ++issued;
    ForwardingKernels::compute(operation);
  }

  std::int64_t issued = 0;
  /// This operation fails, counted from 0; -1: none.
  std::int64_t fails_at = -1;
  bool failed = false;
};

}  // namespace trireme::testing
