// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/owned_tensors.hpp"

#include <algorithm>

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

std::int64_t held_elements(const Parameter& parameter, const layout::Mesh& mesh) {
  std::int64_t most = 0;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const auto box = layout::shard_box(parameter.tensor, mesh, base::Rank(rank));
    most = std::max(most, layout::element_count(box));
  }
  return most;
}

}  // namespace

bool is_rule_matrix(const Parameter& parameter) {
  return parameter.place.kind == Place::Kind::layer && parameter.tensor.shape.size() == 2;
}

MatrixCost muon_cost(const layout::MatrixShape& shape) {
  const auto form = layout::cheapest_newton_schulz_form(shape);
  return {layout::newton_schulz_flops(form, shape), layout::split_newton_schulz(shape)};
}

std::vector<layout::OwnedTensor> owned_tensors(const ModelConfig& config, int tensor,
                                               const CostOfMatrix& cost) {
  auto list = parameters(config);
  std::stable_sort(list.begin(), list.end(), [&](const Parameter& a, const Parameter& b) {
    return turn(a.place, config.num_hidden_layers) < turn(b.place, config.num_hidden_layers);
  });
  const auto mesh = layout::Mesh::of(1, 1, tensor);
  std::vector<layout::OwnedTensor> tensors;
  tensors.reserve(list.size());
  std::string fused_name;
  for (const auto& parameter : list) {
    const auto& shape = parameter.tensor.shape;
    layout::OwnedTensor owned;
    owned.name = parameter.tensor.name;
    owned.shape = {shape[0], shape.size() == 2 ? shape[1] : 0};
    owned.held_elements = held_elements(parameter, mesh);
    if (is_rule_matrix(parameter)) {
      auto known = cost(owned.shape);
      owned.flops = known.flops;
      owned.split = std::move(known.split);
      owned.joined = tensor == 1 && parameter.fused_name == fused_name && !tensors.empty() &&
                     tensors.back().held_elements % layout::OwnershipOptions{}.alignment == 0;
      fused_name = parameter.fused_name;
    }
    tensors.push_back(std::move(owned));
  }
  return tensors;
}

}  // namespace trireme::model
