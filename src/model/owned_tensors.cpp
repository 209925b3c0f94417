// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/owned_tensors.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace trireme::model {
namespace {

/// Position of a part of the model in backward: the head, layers from the last, the embedding.
int turn(const Place& place, int layers) {
  switch (place.kind) {
    case Place::Kind::head:
      return -1;
    case Place::Kind::layer:
      return layers - 1 - place.layer;
    case Place::Kind::embedding:
      return layers;
  }
  return layers;
}

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Names of the first layer's matrices.
std::string some_names(const std::vector<Parameter>& list) {
  std::string names;
  for (const auto& parameter : list) {
    if (parameter.place != Place{Place::Kind::layer, 0} || !is_rule_matrix(parameter)) continue;
    names += (names.empty() ? "" : ", ") + parameter.tensor.name;
  }
  return names;
}

std::int64_t held_elements(const Parameter& parameter, const layout::Mesh& mesh) {
  std::int64_t most = 0;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const auto box = layout::shard_box(parameter.tensor, mesh, base::Rank(rank));
    most = std::max(most, layout::element_count(box));
  }
  return most;
}

}  // namespace

bool is_rule_matrix(const Parameter& parameter, const MatrixSelection& selection) {
  if (parameter.place.kind != Place::Kind::layer || parameter.tensor.shape.size() != 2) {
    return false;
  }
  return std::none_of(
      selection.adamw.begin(), selection.adamw.end(),
      [&](const std::string& pattern) { return matches(pattern, parameter.tensor.name); });
}

base::Status check(const MatrixSelection& selection, const ModelConfig& config) {
  const auto list = parameters(config);
  for (const auto& pattern : selection.adamw) {
    const auto names_one = [&](const Parameter& parameter) {
      return is_rule_matrix(parameter) && matches(pattern, parameter.tensor.name);
    };
    if (std::any_of(list.begin(), list.end(), names_one)) continue;
    return base::usage_failure(base::format(
        "optimizer.adamw_matrices has {}, which no matrix of a layer is called; names are such as "
        "{}",
        pattern, some_names(list)));
  }
  std::map<std::string, const Parameter*> first_of;  // by fused name
  for (const auto& parameter : list) {
    if (!is_rule_matrix(parameter)) continue;
    const auto& first = *first_of.emplace(parameter.fused_name, &parameter).first->second;
    if (is_rule_matrix(first, selection) == is_rule_matrix(parameter, selection)) continue;
    return base::usage_failure(base::format(
        "optimizer.adamw_matrices names only one of {} and {} (a product reads them as one "
        "matrix); name both or neither",
        first.tensor.name, parameter.tensor.name));
  }
  return {};
}

std::int64_t blocks_of(const Parameter& parameter, const ModelConfig& config,
                       const MatrixSelection& selection) {
  if (!selection.per_head || !is_rule_matrix(parameter, selection)) return 1;
  const auto ends = [&](std::string_view end) {
    return std::string_view(parameter.tensor.name).ends_with(end);
  };
  const bool of_heads =
      ends(".attention.q.weight") || ends(".attention.k.weight") || ends(".attention.v.weight");
  return of_heads ? parameter.tensor.shape[0] / config.head_dim : 1;
}

std::vector<std::int64_t> renewal_turns(const std::vector<Parameter>& parameters,
                                        const CostOfMatrix& cost,
                                        const MatrixSelection& selection) {
  std::vector<std::int64_t> turns(parameters.size(), 0);
  if (!cost) return turns;
  std::vector<std::pair<ownership::Renewal, std::size_t>> order;
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    if (!is_rule_matrix(parameters[index], selection)) continue;
    const auto& shape = parameters[index].tensor.shape;
    const auto renewal = cost({shape[0], shape[1]}).renewal;
    if (renewal.flops > 0) order.emplace_back(renewal, index);
  }
  if (order.empty()) return turns;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first.flops > b.first.flops; });
  // Evenly over the round where there are more turns than matrices.
  const auto every = order.front().first.every;
  const auto count = std::min(every, std::ssize(order));
  std::set<std::pair<double, std::int64_t>> by_work;
  for (std::int64_t number = 0; number < count; ++number)
    by_work.emplace(0.0, number * every / count);
  for (const auto& [renewal, index] : order) {
    const auto [work, turn] = by_work.extract(by_work.begin()).value();
    turns[index] = turn;
    by_work.emplace(work + renewal.flops, turn);
  }
  return turns;
}

MatrixCost cost_of(const CostOfMatrix& cost, const ownership::MatrixShape& shape,
                   std::int64_t blocks) {
  auto known = cost({shape.rows / blocks, shape.columns});
  if (blocks == 1) return known;
  return {static_cast<double>(blocks) * known.flops, {}, {}};
}

MatrixCost muon_cost(const ownership::MatrixShape& shape) {
  const auto form = ownership::cheapest_newton_schulz_form(shape);
  return {ownership::newton_schulz_flops(form, shape), ownership::split_newton_schulz(shape), {}};
}

std::vector<ownership::OwnedTensor> owned_tensors(const ModelConfig& config, int tensor,
                                                  const CostOfMatrix& cost,
                                                  const MatrixSelection& selection,
                                                  BucketBorders borders) {
  const auto list = parameters(config);
  const auto turns = renewal_turns(list, cost, selection);
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return turn(list[a].place, config.num_hidden_layers) <
           turn(list[b].place, config.num_hidden_layers);
  });
  const auto mesh = layout::Mesh::of(1, 1, tensor);
  std::vector<ownership::OwnedTensor> tensors;
  tensors.reserve(list.size());
  std::string fused_name;
  const Place* before = nullptr;  // of the last matrix
  for (const auto index : order) {
    const auto& parameter = list[index];
    const auto& shape = parameter.tensor.shape;
    ownership::OwnedTensor owned;
    owned.name = parameter.tensor.name;
    owned.shape = {shape[0], shape.size() == 2 ? shape[1] : 0};
    owned.held_elements = held_elements(parameter, mesh);
    if (is_rule_matrix(parameter, selection)) {
      auto known = cost_of(cost, owned.shape, blocks_of(parameter, config, selection));
      owned.flops = known.flops;
      owned.split = std::move(known.split);
      if (known.renewal.flops > 0) owned.renewals = {known.renewal.at(turns[index])};
      owned.joined = tensor == 1 && parameter.fused_name == fused_name && !tensors.empty() &&
                     tensors.back().held_elements % ownership::PlanOptions{}.alignment == 0;
      fused_name = parameter.fused_name;
      owned.begins_bucket =
          borders == BucketBorders::units && before != nullptr && *before != parameter.place;
      before = &parameter.place;
    }
    tensors.push_back(std::move(owned));
  }
  return tensors;
}

}  // namespace trireme::model
