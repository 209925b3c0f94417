// SPDX-License-Identifier: Apache-2.0
#include "ownership/output/rank_content.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::ownership {

std::vector<std::vector<OwnedPart>> contents(const Plan& plan,
                                             std::span<const OwnedTensor> tensors) {
  std::vector<std::vector<OwnedPart>> ranks(plan.load.size());
  // The part of a matrix that is the last of a rank's, or a new one.
  const auto part_of = [&](int rank, const MatrixOwner& owner) -> OwnedPart& {
    auto& parts = ranks[static_cast<std::size_t>(rank)];
    if (parts.empty() || parts.back().tensor != owner.tensor) {
      parts.push_back({.tensor = owner.tensor, .is_shared = owner.is_shared()});
    }
    return parts.back();
  };
  for (const auto& owner : plan.matrices) {
    const auto& tensor = tensors[owner.tensor];
    for (const auto& range : owner.ranges) {
      auto& part = part_of(range.rank, owner);
      part.begin = range.begin;
      part.end = range.end;
      part.flops = owner.is_shared()
                       ? static_cast<double>(range.end - range.begin) * tensor.split.of_column()
                       : tensor.flops;
    }
    for (std::size_t at = 0; at < owner.square_ranks.size(); ++at) {
      part_of(owner.square_ranks[at], owner).flops += tensor.split.square[at];
    }
  }
  return ranks;
}

std::vector<ShapeCount> shapes(std::span<const OwnedTensor> tensors) {
  std::vector<ShapeCount> all;
  for (const auto& tensor : tensors) {
    if (!tensor.is_matrix()) continue;
    const auto same = std::find_if(
        all.begin(), all.end(), [&](const ShapeCount& each) { return each.shape == tensor.shape; });
    if (same == all.end()) {
      all.push_back({tensor.shape, tensor.flops, 1});
    } else {
      ++same->count;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ShapeCount& a, const ShapeCount& b) { return a.flops > b.flops; });
  return all;
}

std::string shape_text(const MatrixShape& shape) {
  return base::format("[{}, {}]", shape.rows, shape.columns);
}

}  // namespace trireme::ownership
