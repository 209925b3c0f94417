// SPDX-License-Identifier: Apache-2.0
// Owners of matrices among tensor-parallel ranks.
#include "sharding/matrix_owners.hpp"

#include "trireme/optim/matrix_rule.hpp"
#include "trireme/ownership/plan.hpp"

#include "sharding/segments.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace trireme::sharding {
namespace {

/// Sharing of a matrix that tensor-parallel ranks hold parts of.
optim::SharedMatrix sharing_of(const ownership::MatrixOwner& owner,
                               const std::vector<layout::Box>& parts, int number) {
  optim::SharedMatrix sharing;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    sharing.shares.push_back({static_cast<int>(rank), parts[rank], {}});
  }
  for (const auto& [rank, begin, end] : owner.ranges) {
    sharing.shares[static_cast<std::size_t>(rank)].slice = {begin, end};
  }
  sharing.gram_ranks = owner.square_ranks;
  sharing.number = number;
  return sharing;
}

/// Cost of a matrix for its owner, or for those who share it.
class MatricesOfRule {
 public:
  explicit MatricesOfRule(const Options& options)
      : rule_(optim::make_matrix_rule(options.rule, device::DType::f32)),
        shares_(options.assignment == ownership::Assignment::shared) {}

  std::int64_t state_elements(const ownership::MatrixShape& shape) const {
    std::int64_t sum = 0;
    for (const auto& state : rule_->owner_states(shape))
      sum += state.shape.rows * state.shape.columns;
    return sum;
  }
  ownership::OwnedTensor work(const optim::Segment& segment) const {
    const auto& [rows, columns] = segment.shape;
    ownership::OwnedTensor work;
    work.shape = segment.shape;
    work.flops =
        static_cast<double>(segment.blocks) * rule_->flops({rows / segment.blocks, columns});
    const auto renewal = rule_->renewal(segment.shape);
    if (renewal.flops > 0) work.renewals = {renewal.at(segment.renewal_turn)};
    if (shares_ && segment.blocks == 1 && is_held_once(segment)) {
      work.split = rule_->split(segment.shape);
    }
    return work;
  }

 private:
  /// Key and value heads that are fewer than ranks are held by several.
  static bool is_held_once(const optim::Segment& segment) {
    std::int64_t held = 0;
    for (const auto& part : segment.parts) held += layout::element_count(part);
    return held == segment.shape.rows * segment.shape.columns;
  }

  std::unique_ptr<optim::MatrixRule> rule_;
  bool shares_;
};

/// Gives the matrices of a shard their owners among tensor-parallel ranks, so that these have about
/// as much to compute. Returns the elements of state of each owner.
std::vector<std::int64_t> assign_owners(std::vector<optim::Segment>& segments, int ranks,
                                        const MatricesOfRule& rule) {
  std::vector<optim::Segment*> matrices;
  std::vector<ownership::OwnedTensor> works;
  for (auto& segment : segments) {
    if (segment.content != optim::Content::matrix) continue;
    matrices.push_back(&segment);
    works.push_back(rule.work(segment));
  }
  std::vector<std::int64_t> elements(static_cast<std::size_t>(ranks), 0);
  const auto owners = ownership::divide_matrices(works, ranks);
  for (std::size_t index = 0; index < matrices.size(); ++index) {
    auto& segment = *matrices[index];
    const auto& owner = owners[index];
    if (owner.is_shared()) {
      segment.sharing = sharing_of(owner, segment.parts, static_cast<int>(index));
      continue;
    }
    segment.owner = owner.ranges.front().rank;
    auto& size = elements[static_cast<std::size_t>(segment.owner)];
    segment.owner_state_begin = std::exchange(size, size + rule.state_elements(segment.shape));
  }
  return elements;
}

}  // namespace

OwnedShards owned_shards(const Options& options, const model::StageParameters& stage) {
  const MatricesOfRule rule(options);
  const int ranks = options.mesh.degree(layout::Axis::tensor);
  const auto own =
      static_cast<std::size_t>(options.mesh.coordinate(layout::Axis::tensor, options.rank));
  OwnedShards owned;
  for (int shard = 0; shard < stage.flat().shards; ++shard) {
    auto& updates = owned.shards.emplace_back(collect(options, stage, shard));
    const auto elements = assign_owners(updates.segments, ranks, rule)[own];
    owned.state_elements = std::max(owned.state_elements, elements);
  }
  return owned;
}

}  // namespace trireme::sharding
