// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace trireme::base {

/// An integer that cannot be mistaken for another kind of integer.
template <typename Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(int value) : value_(value) {}

  constexpr int value() const { return value_; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  int value_ = 0;
};

/// Position in the world of a run.
using Rank = Id<struct RankTag>;
/// Position among the ranks of one node.
using LocalRank = Id<struct LocalRankTag>;
/// Position of a node among the nodes of a run.
using NodeRank = Id<struct NodeRankTag>;
/// Pipeline stage: the coordinate on the pp axis.

}  // namespace trireme::base

template <typename Tag>
struct std::hash<trireme::base::Id<Tag>> {
  std::size_t operator()(const trireme::base::Id<Tag>& id) const noexcept {
    return std::hash<int>{}(id.value());
  }
};
