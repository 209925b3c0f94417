// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage_context.hpp"

#include <string>

namespace trireme::layers {

/// A matrix of this rank, [out, in], its bias (or empty), and where their gradients add up.
struct Matrix {
  device::Tensor weight;
  device::Tensor bias;
  device::Tensor d_weight;
  device::Tensor d_bias;
  /// The weight's kept copy in FP8, or empty.
  device::Quantised copy{};
};

inline Matrix matrix(const model::StageParameters& stage, const std::string& name) {
  return {stage.parameter(name + ".weight"), stage.parameter(name + ".bias"),
          stage.gradient(name + ".weight"), stage.gradient(name + ".bias")};
}

/// Matrix that a layer's GEMM reads.
inline Matrix factor(const StageContext& context, const model::StageParameters& stage,
                     const std::string& name) {
  auto factor = matrix(stage, name);
  if (context.weight_copies != nullptr) factor.copy = context.weight_copies->of(name + ".weight");
  return factor;
}

}  // namespace trireme::layers
