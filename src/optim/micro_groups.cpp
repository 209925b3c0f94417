// SPDX-License-Identifier: Apache-2.0
#include "micro_groups.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <tuple>

namespace trireme::optim {
namespace {

std::int64_t elements_of(const Segment& segment) {
  return segment.shape.rows * segment.shape.columns;
}

/// Elements that a holder has of a matrix: all, where there is no other.
std::int64_t held_elements(const Segment& segment, std::size_t holder) {
  return segment.parts.empty() ? segment.flat.size() : layout::element_count(segment.parts[holder]);
}

/// Matrices, alike ones beside each other, larger ones first: a small one fills up a group.
std::vector<std::size_t> order_of(std::span<const Segment> segments) {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < segments.size(); ++index) {
    const auto& segment = segments[index];
    if (segment.content == Content::matrix && !segment.sharing) order.push_back(index);
  }
  const auto key = [&](std::size_t index) {
    const auto& segment = segments[index];
    return std::tuple(-elements_of(segment), segment.shape.rows, segment.blocks);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

class GroupFormer {
 public:
  GroupFormer(std::span<const Segment> segments, int ranks, int rank, const GroupLimits& limits)
      : segments_(segments),
        ranks_(static_cast<std::size_t>(ranks)),
        rank_(rank),
        limits_(limits),
        owned_(ranks_, 0) {}

  std::vector<MatrixGroup> form() && {
    for (const auto index : order_of(segments_)) {
      const auto& segment = segments_[index];
      TRIREME_EXPECT(segment.owner >= 0 && static_cast<std::size_t>(segment.owner) < ranks_,
                     "an owner is one of the ranks that exchange parts");
      auto& owned = owned_[static_cast<std::size_t>(segment.owner)];
      const auto elements = elements_of(segment);
      if (owned > 0 && owned + elements > limits_.group_elements) close();
      group_.members.push_back({index, 0});
      owned += elements;
      if (segment.owner == rank_) own(index);
    }
    close();
    return std::move(groups_);
  }

 private:
  void own(std::size_t index) {
    const auto& segment = segments_[index];
    const auto elements = elements_of(segment);
    const auto joins = [&](const MatrixRun& run) {
      return run.shape == segment.shape && run.blocks == segment.blocks &&
             (std::ssize(run.segments) + 1) * elements <= limits_.run_elements;
    };
    if (group_.owned.empty() || !joins(group_.owned.back())) {
      group_.owned.push_back({segment.shape, segment.blocks, group_.owned_elements, {}});
    }
    group_.owned.back().segments.push_back(index);
    group_.owned_elements += elements;
  }

  /// Places parts, now that the regions of the group are known.
  void close() {
    if (group_.members.empty()) return;
    std::vector<std::int64_t> begin(ranks_, 0);  // [owner]: of this rank's parts
    for (std::size_t holder = 0; holder < ranks_; ++holder) {
      std::vector<std::int64_t> held(ranks_, 0);  // [owner]
      for (const auto& member : group_.members) {
        const auto& segment = segments_[member.segment];
        held[static_cast<std::size_t>(segment.owner)] += held_elements(segment, holder);
      }
      group_.region = std::max(group_.region, *std::max_element(held.begin(), held.end()));
    }
    for (auto& member : group_.members) {
      const auto& segment = segments_[member.segment];
      auto& next = begin[static_cast<std::size_t>(segment.owner)];
      member.begin = segment.owner * group_.region + next;
      next += segment.flat.size();
    }
    groups_.push_back(std::exchange(group_, {}));
    std::fill(owned_.begin(), owned_.end(), 0);
  }

  std::span<const Segment> segments_;
  std::size_t ranks_;
  int rank_;
  GroupLimits limits_;
  /// [owner]: elements of its matrices in the open group.
  std::vector<std::int64_t> owned_;
  MatrixGroup group_;
  std::vector<MatrixGroup> groups_;
};

}  // namespace

std::vector<MatrixGroup> form_groups(std::span<const Segment> segments, int ranks, int rank,
                                     const GroupLimits& limits) {
  return GroupFormer(segments, ranks, rank, limits).form();
}

}  // namespace trireme::optim
