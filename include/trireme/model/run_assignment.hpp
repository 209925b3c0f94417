// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/ownership/price.hpp"

#include <cstdint>
#include <string>

namespace trireme::model {

/// The facts that decide how a run divides its matrices among data-parallel ranks.
struct AssignmentQuestion {
  layout::Mesh mesh;
  /// Smallest bucket of gradients.
  std::int64_t bucket_elements = 1;
  /// Cost of an update of a matrix for its owner.
  CostOfMatrix cost;
  MatrixSelection matrices;
  /// With those of units a bucket has the matrices of one layer.
  BucketBorders borders = BucketBorders::anywhere;
  /// Whether several ranks can compute a matrix.
  bool can_share = false;
  /// Work of a step of the whole model.
  ownership::StepWork work;
  ownership::MachineSpeeds machine;
};

struct RunAssignment {
  ownership::Assignment assignment = ownership::Assignment::padded;
  /// In a sentence, for the log.
  std::string reason;
};

/// The assignment whose plan adds least to a step, for the layers of the pipeline stage that has
/// most of them: the same on every rank, whatever its stage.
RunAssignment run_assignment(const ModelConfig& config, const AssignmentQuestion& question);

}  // namespace trireme::model
