// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/price.hpp"

#include "qwen3.hpp"

#include <vector>

/// Modelled steps of what others publish.
namespace trireme::bench {

/// One model on one arrangement of GPUs.
struct Case {
  const NamedModel& model;
  ownership::PlanOptions options;
  ownership::StepWork work;
  ownership::MachineSpeeds machine;
};

std::vector<ownership::OwnedTensor> tensors_of(const Case& on, int tensor,
                                               const model::CostOfMatrix& cost);

/// Canzona's buffers are those of Megatron-LM's distributed optimizer, whose gathers of parameters
/// overlap with forward (--overlap-param-gather) as ours do: so do its.
ownership::StepPrice price_of_canzona(const Case& on, const model::CostOfMatrix& cost);
/// Whole layers in turn on dp ranks.
ownership::StepPrice price_of_layer_wise(const Case& on, const model::CostOfMatrix& cost);
/// Megatron-LM's LayerWiseDistributedOptimizer as in its releases until April 2026 (pull request
/// 4509 tells what they did): parameters, q, k, v and gate, up as one, sorted by elements, to dp
/// ranks forth and back; those of AdamW too, so that one rank updates the embedding. Parameters are
/// copied into the gathered buffer and out of it, behind the update: overlap with forward came
/// later.
ownership::StepPrice price_of_released(const Case& on, const model::CostOfMatrix& cost);

}  // namespace trireme::bench
