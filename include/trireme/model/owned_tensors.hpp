// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/ownership.hpp"
#include "trireme/model/parameters.hpp"

#include <functional>
#include <vector>

namespace trireme::model {

/// True for a matrix of a layer: what Muon, Shampoo and SOAP update. Embeddings, the head, norms
/// and biases stay with AdamW. q, k, v and gate, up are matrices of their own.
bool is_rule_matrix(const Parameter& parameter);

/// What a matrix rule says of a matrix: FLOPs of one update, and whether it can be shared.
struct MatrixCost {
  double flops = 0;
  layout::SplitCost split;
};
using CostOfMatrix = std::function<MatrixCost(const layout::MatrixShape&)>;

/// Newton-Schulz in the form with the fewest FLOPs.
MatrixCost muon_cost(const layout::MatrixShape& shape);

/// All parameters in the order in which backward completes their gradients, for layout::
/// plan_ownership. `tensor`: the tensor-parallel degree, which must suit the model. Without tensor
/// parallelism parts of one product are joined, as StageParameters has them.
std::vector<layout::OwnedTensor> owned_tensors(const ModelConfig& config, int tensor,
                                               const CostOfMatrix& cost);

}  // namespace trireme::model
