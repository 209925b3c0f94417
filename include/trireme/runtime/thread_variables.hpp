// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"

namespace trireme::runtime {

/// Fails (usage) if a start would refuse OMP_NUM_THREADS, GOMP_SPINCOUNT or OMP_WAIT_POLICY.
base::Status check_thread_variables(const base::Environment& environment);

}  // namespace trireme::runtime
