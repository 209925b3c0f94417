// SPDX-License-Identifier: Apache-2.0
#include "peer_steps.hpp"

#include "peers.hpp"

#include <algorithm>
#include <string>

namespace trireme::bench {

using ownership::Assignment;
using ownership::Plan;
using ownership::PlanOptions;
using ownership::StepPrice;

namespace {

/// Layer of each tensor that is a matrix, and the index of its unit among fused_units().
struct Position {
  int layer = 0;
  std::size_t unit = 0;
};
std::vector<Position> positions(const std::vector<ownership::OwnedTensor>& tensors,
                                const model::ModelConfig& config) {
  // fused_units() go through the model's order; the tensors through that of backward.
  std::vector<Position> by_tensor(tensors.size());
  std::size_t unit = 0;
  std::string fused;
  for (const auto& parameter : model::parameters(config)) {
    if (!model::is_rule_matrix(parameter)) continue;
    if (!fused.empty() && fused != parameter.fused_name) ++unit;
    fused = parameter.fused_name;
    const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
      return tensor.name == parameter.tensor.name;
    });
    by_tensor[static_cast<std::size_t>(at - tensors.begin())] = {parameter.place.layer, unit};
  }
  return by_tensor;
}

/// A plan in which `owner_of` says who has each matrix, all in one ragged bucket, and what AdamW
/// updates is divided evenly. It says how long the update takes, but nothing of reductions and
/// gathers.
template <typename OwnerOf>
Plan plan_of_owners(const std::vector<ownership::OwnedTensor>& tensors, const PlanOptions& options,
                    const OwnerOf& owner_of) {
  Plan plan;
  plan.data = options.data;
  plan.tensor = options.tensor;
  plan.load.assign(static_cast<std::size_t>(plan.ranks()), 0.0);
  std::vector<std::int64_t> length(static_cast<std::size_t>(plan.data), 0);
  std::int64_t others = 0;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const auto& tensor = tensors[at];
    plan.elements += tensor.held_elements;
    if (!tensor.is_matrix()) {
      others += tensor.held_elements;
      continue;
    }
    const int rank = owner_of(at);
    plan.matrices.push_back(
        {.tensor = at, .ranges = {{rank, 0, tensor.shape.longer()}}, .square_ranks = {}});
    plan.load[static_cast<std::size_t>(rank)] += tensor.flops;
    length[static_cast<std::size_t>(rank / plan.tensor)] += tensor.held_elements;
  }
  ownership::PlannedBucket bucket{{0, 0}, {0}};
  for (const auto own : length) {
    bucket.cuts.push_back(bucket.cuts.back() + own + others / plan.data);
  }
  bucket.flat.end = bucket.cuts.back();
  plan.buckets.push_back(std::move(bucket));
  return plan;
}

/// Replaces what ZeRO level 1 does: gradients by all-reduce, which takes twice the time of a
/// reduce-scatter, so that backward hides half as much of it; parameters by a gather of unequal
/// parts, with a start for each owner, which nothing hides.
void all_reduce_and_gather(const Case& on, const model::CostOfMatrix& cost, const Plan& plan,
                           StepPrice& result) {
  const auto held = tensors_of(on, on.options.tensor, cost);
  auto half = on.machine;
  half.node_bytes /= 2;
  half.network_bytes /= 2;
  half.collective_seconds *= 2;
  const auto adamw = plan_of_adamw(held, on.options);
  result.reduce = price(adamw, held, on.work, half).reduce;
  const auto owners =
      std::count_if(plan.load.begin(), plan.load.end(), [](double load) { return load > 0; });
  result.gather = gather_seconds(adamw, on.work, on.machine) +
                  static_cast<double>(owners) * on.machine.collective_seconds;
}

/// Tensor-parallel ranks gather the matrices that their data-parallel rank owns, in one collective
/// for each, and all compute the same.
double gather_along_tp(const Case& on, const Plan& plan,
                       const std::vector<ownership::OwnedTensor>& whole) {
  const int tensor = on.options.tensor;
  if (tensor == 1) return 0;
  std::vector<double> seconds(plan.load.size(), 0.0);
  for (const auto& owner : plan.matrices) {
    seconds[static_cast<std::size_t>(owner.ranges.front().rank)] +=
        4 * static_cast<double>(whole[owner.tensor].held_elements) * (tensor - 1) / tensor /
            on.machine.node_bytes +
        on.machine.collective_seconds;
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

}  // namespace

std::vector<ownership::OwnedTensor> tensors_of(const Case& on, int tensor,
                                               const model::CostOfMatrix& cost) {
  return model::owned_tensors(on.model.config, tensor, cost);
}

StepPrice price_of_canzona(const Case& on, const model::CostOfMatrix& cost) {
  const auto tensors = tensors_of(on, on.options.tensor, cost);
  const auto place = positions(tensors, on.model.config);
  const auto units = fused_units(on.model.config, cost, FusedCost::of_parts);
  const auto owners = canzona_owners(units, on.options.data, on.options.tensor);
  const auto plan = plan_of_owners(tensors, on.options,
                                   [&](std::size_t tensor) { return owners[place[tensor].unit]; });
  auto result = price(plan, tensors, on.work, on.machine);
  auto cuts = on.options;
  cuts.order = ownership::BucketOrder::of_backward;
  const auto ragged =
      price(make_plan(tensors, cuts, Assignment::contiguous), tensors, on.work, on.machine);
  result.reduce = ragged.reduce;
  result.gather = ragged.gather;
  return result;
}

StepPrice price_of_layer_wise(const Case& on, const model::CostOfMatrix& cost) {
  auto options = on.options;
  options.tensor = 1;
  const auto whole = tensors_of(on, 1, cost);
  const auto place = positions(whole, on.model.config);
  const auto plan = plan_of_owners(
      whole, options, [&](std::size_t tensor) { return place[tensor].layer % options.data; });
  auto result = price(plan, whole, on.work, on.machine);
  all_reduce_and_gather(on, cost, plan, result);
  result.exchange = gather_along_tp(on, plan, whole);
  return result;
}

StepPrice price_of_released(const Case& on, const model::CostOfMatrix& cost) {
  auto options = on.options;
  options.tensor = 1;
  const auto whole = tensors_of(on, 1, cost);
  const auto place = positions(whole, on.model.config);
  const auto units = fused_units(on.model.config, cost, FusedCost::of_parts);
  const auto owners = ping_pong_owners(units, options.data);
  const auto plan = plan_of_owners(whole, options,
                                   [&](std::size_t tensor) { return owners[place[tensor].unit]; });
  auto result = price(plan, whole, on.work, on.machine);
  all_reduce_and_gather(on, cost, plan, result);
  result.exchange = gather_along_tp(on, plan, whole);
  double largest = 0;
  double all = 0;
  for (const auto& tensor : whole) {
    const double elements = static_cast<double>(tensor.held_elements) / on.options.tensor;
    all += elements;
    if (!tensor.is_matrix()) largest = std::max(largest, elements);
  }
  constexpr double update_bytes = 30;
  result.compute += largest * update_bytes / on.machine.memory_bytes;
  result.gather += 2 * on.work.parameter_bytes * all / on.machine.memory_bytes;
  return result;
}

}  // namespace trireme::bench
