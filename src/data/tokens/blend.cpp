// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/blend.hpp"

#include "trireme/base/contract.hpp"

namespace trireme::data {
namespace {

/// floor(count * part / whole), part <= whole.
std::uint64_t share(std::uint64_t count, std::uint64_t part, std::uint64_t whole) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(count) * part / whole);
}

}  // namespace

Blend::Blend(std::span<const std::uint64_t> weights) {
  TRIREME_EXPECT(!weights.empty(), "at least one source");
  prefix_.reserve(weights.size() + 1);
  prefix_.push_back(0);
  for (const auto weight : weights) {
    TRIREME_EXPECT(weight > 0, "weights above zero");
    prefix_.push_back(prefix_.back() + weight);
    TRIREME_EXPECT(prefix_.back() < (std::uint64_t{1} << 62), "a sum of weights below 2^62");
  }
}

Blend::Draw Blend::operator()(std::uint64_t draw) const {
  std::size_t begin = 0;
  std::size_t end = prefix_.size() - 1;
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    const auto left = prefix_[middle] - prefix_[begin];
    const auto both = prefix_[end] - prefix_[begin];
    const auto before = share(draw, left, both);
    if (share(draw + 1, left, both) > before) {
      draw = before;
      end = middle;
    } else {
      draw -= before;
      begin = middle;
    }
  }
  return {begin, draw};
}

std::vector<std::uint64_t> Blend::counts(std::uint64_t draws) const {
  struct Node {
    std::size_t begin;
    std::size_t end;
    std::uint64_t draws;
  };
  std::vector<std::uint64_t> counts(prefix_.size() - 1);
  for (std::vector<Node> nodes{{0, counts.size(), draws}}; !nodes.empty();) {
    const auto [begin, end, reached] = nodes.back();
    nodes.pop_back();
    if (end - begin == 1) {
      counts[begin] = reached;
      continue;
    }
    const auto middle = begin + (end - begin) / 2;
    const auto left =
        share(reached, prefix_[middle] - prefix_[begin], prefix_[end] - prefix_[begin]);
    nodes.push_back({begin, middle, left});
    nodes.push_back({middle, end, reached - left});
  }
  return counts;
}

}  // namespace trireme::data
