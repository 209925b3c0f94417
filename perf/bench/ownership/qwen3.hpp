// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/owned_tensors.hpp"

#include "peers.hpp"

#include <string>
#include <vector>

namespace trireme::bench {

struct NamedModel {
  std::string name;
  model::ModelConfig config;
};
/// Qwen3's dense models of 0.6B to 32B (Qwen team 2025).
std::vector<NamedModel> qwen3_models();

/// Newton-Schulz as published.
model::MatrixCost standard_cost(const ownership::MatrixShape& shape);

/// q, k, v and gate, up as one matrix each, in the model's order. `as_one` costs them as one
/// matrix; otherwise their parts are updated apart, but stay with one owner.
enum class FusedCost { as_one, of_parts };
std::vector<Unit> fused_units(const model::ModelConfig& config, const model::CostOfMatrix& cost,
                              FusedCost fused);
/// Every matrix by itself.
std::vector<Unit> separate_units(const model::ModelConfig& config, const model::CostOfMatrix& cost);

}  // namespace trireme::bench
