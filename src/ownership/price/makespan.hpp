// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"
#include "trireme/ownership/price.hpp"

#include <span>

namespace trireme::ownership {

/// Seconds until the last rank has done its part of the update. A rank does product after product
/// of what has all it needs: columns of shared matrices first, then [n, n] work, then whole
/// matrices; large matrices before small. Terms and results of shared ones go over the links of a
/// node.
double makespan(const Plan& plan, std::span<const OwnedTensor> tensors,
                const MachineSpeeds& machine);

}  // namespace trireme::ownership
