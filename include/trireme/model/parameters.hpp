// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/box.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::model {

enum class Initialisation { normal, ones, zeros };

/// Part of a model that a parameter belongs to: the embedding, one of the layers, or the head.
struct Place {
  enum class Kind { embedding, layer, head };
  Kind kind = Kind::layer;
  int layer = 0;
  auto operator<=>(const Place&) const = default;
};

/// Knowledge that tensor-parallel ranks have of a parameter's gradient after backward.
enum class TensorGradient {
  complete,             ///< each rank has the gradient of what it holds
  partial_in_sequence,  ///< partial when sequence-parallel ranks see different rows (norms)
  partial_in_heads,     ///< partial because ranks hold different heads (head norms)
  partial_in_replicas   ///< ranks that hold the same box see different query heads (k, v)
};

/// One logical parameter: everything that sharding, initialisation, checkpoints, Hugging Face's
/// names, ownership and planning need to know.
struct Parameter {
  layout::TensorSpec tensor;
  Place place;
  Initialisation initialisation = Initialisation::normal;
  /// Standard deviation of a normal initialisation.
  float deviation = 0.02F;
  /// Matrices decay, vectors do not.
  bool decays = true;
  TensorGradient gradient = TensorGradient::complete;
  /// Name of the fused parameter that it is part of. Consecutive parameters of one lie row after
  /// row in memory and enter one product: q, k, v; gate, up.
  std::string fused_name;
};

/// The one list of parameters, in model order. With tied embeddings the head has no matrix of
/// its own.
std::vector<Parameter> parameters(const ModelConfig& config);

}  // namespace trireme::model
