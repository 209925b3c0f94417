// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include <span>
#include <vector>

namespace trireme::ownership {

/// The part of one matrix that a rank does.
struct OwnedPart {
  std::size_t tensor = 0;
  double flops = 0;
  /// Columns of a shared matrix; equal where it has none of it.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool is_shared = false;
};

/// Parts of each rank, in the order of the tensors.
std::vector<std::vector<OwnedPart>> contents(const Plan& plan,
                                             std::span<const OwnedTensor> tensors);

/// Shapes of matrices, those with most FLOPs first.
struct ShapeCount {
  MatrixShape shape;
  double flops = 0;
  int count = 0;
};
std::vector<ShapeCount> shapes(std::span<const OwnedTensor> tensors);

/// "[17408, 5120]".
std::string shape_text(const MatrixShape& shape);

}  // namespace trireme::ownership
