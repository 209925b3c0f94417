// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"
#include "trireme/layout/box.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <string>
#include <vector>

namespace trireme::engine {

/// Part of a logical tensor of training state that a checkpoint must hold, fp32. Like all tensors
/// of an engine, its values lie on the engine's device.
struct StatePart {
  /// "layers.0.attention.q.weight", or "adamw.first_moment/layers.0.attention.q.weight".
  std::string name;
  layout::Shape shape;
  layout::Box box;
  /// [elements of the box]: contiguous.
  device::Tensor values;
  /// Exactly one rank of a data-parallel replica is primary for an element.
  bool primary = true;
};

/// Part of one parameter that a rank has, and of its gradient when it trains: a whole box.
struct ParameterPart {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  device::Tensor values;    // in the compute type; empty where data-parallel ranks divide it
  device::Tensor gradient;  // f32, or empty, likewise
  /// Exactly one rank of a data-parallel replica is primary for a box.
  bool primary = true;
};

/// The shard pieces of a rank's flat buffers, as boxes of logical tensors. Either may be empty.
std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const device::Tensor& parameters,
                                           const device::Tensor& gradients);

}  // namespace trireme::engine
