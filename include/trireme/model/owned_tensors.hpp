// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/ownership/plan.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trireme::model {

/// The matrices of a model that a matrix rule takes, and how.
struct MatrixSelection {
  /// Names, with * for any characters, of matrices that stay with AdamW.
  std::vector<std::string> adamw;
  /// Whether each head of q, k and v is a matrix of its own.
  bool per_head = false;
};

/// Refuses patterns that name no matrix, or only some of those that one product reads as one.
base::Status check(const MatrixSelection& selection, const ModelConfig& config);

/// True for a matrix of a layer: what Muon, Shampoo and SOAP update, unless the selection leaves it
/// to AdamW. Embeddings, the head, norms and biases stay with AdamW. q, k, v and gate, up are
/// matrices of their own.
bool is_rule_matrix(const Parameter& parameter, const MatrixSelection& selection = {});

/// Equal blocks of rows of a matrix that are matrices of their own to the rule: heads, or one.
std::int64_t blocks_of(const Parameter& parameter, const ModelConfig& config,
                       const MatrixSelection& selection);

/// Cost of a matrix by its rule: FLOPs of one update, whether it can be shared, and what of them
/// comes once in several updates, without its turn.
struct MatrixCost {
  double flops = 0;
  ownership::SplitCost split;
  ownership::Renewal renewal{};
};
using CostOfMatrix = std::function<MatrixCost(const ownership::MatrixShape&)>;

/// Newton-Schulz in the form with the fewest FLOPs.
MatrixCost muon_cost(const ownership::MatrixShape& shape);

/// Where buckets end: wherever they are full, or also wherever another unit begins, and inside a
/// table. A unit is what data-parallel ranks gather at once where each holds a shard of it alone: a
/// layer, a block of the table's or of the head's vocabulary.
enum class BucketBorders { anywhere, units };

/// All parameters in the order in which backward completes their gradients, for
/// ownership::make_plan. `tensor`: the tensor-parallel degree, which must suit the model. Without
/// tensor parallelism parts of one product are joined, as StageParameters has them. Borders: those
/// of matrices that a rule updates whole.
std::vector<ownership::OwnedTensor> owned_tensors(const ModelConfig& config, int tensor,
                                                  const CostOfMatrix& cost,
                                                  const MatrixSelection& selection = {},
                                                  BucketBorders borders = BucketBorders::anywhere);

/// [parameter]: turn of the renewal of each matrix that a rule updates whole. Such that each update
/// has about as much of it to do: the most work first, each to the turn with the least so far. A
/// function of the whole model, so that no layout changes it.
std::vector<std::int64_t> renewal_turns(const std::vector<Parameter>& parameters,
                                        const CostOfMatrix& cost, const MatrixSelection& selection);

/// Cost of a matrix, or of all blocks of one. Blocks are not shared.
MatrixCost cost_of(const CostOfMatrix& cost, const ownership::MatrixShape& shape,
                   std::int64_t blocks);

}  // namespace trireme::model
