#pragma once

#include "trireme/model/stage_parameters.hpp"

#include <string>

namespace trireme::model {

/// A matrix of this rank, [out, in], its bias (or empty), and where their gradients add up.
struct Matrix {
  device::Tensor weight;
  device::Tensor bias;
  device::Tensor d_weight;
  device::Tensor d_bias;
};

inline Matrix matrix(const StageParameters& stage, const std::string& name) {
  return {stage.parameter(name + ".weight"), stage.parameter(name + ".bias"),
          stage.gradient(name + ".weight"), stage.gradient(name + ".bias")};
}

}  // namespace trireme::model
