// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/ownership.hpp"
#include "trireme/layout/ownership_price.hpp"

#include <span>

namespace trireme::layout {

/// Seconds until the last rank has done its part of the update. A rank does product after product
/// of what has all it needs: columns of shared matrices first, then [n, n] work, then whole
/// matrices; large matrices before small. Terms and results of shared ones go over the links of a
/// node.
double makespan(const OwnershipPlan& plan, std::span<const OwnedTensor> tensors,
                const Machine& machine);

}  // namespace trireme::layout
