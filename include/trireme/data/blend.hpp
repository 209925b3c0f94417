// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::data {

/// Interleaves draws from several sources in given proportions, without storing the order.
///
/// The sources are the leaves of a balanced binary tree. At a node whose left part has weight L of
/// W, the first n draws that reach it send floor(n * L / W) to the left: draw n goes left when that
/// number grows from n to n + 1 (a Bresenham line). So after n draws a source with weight w of W
/// has had n * w / W of them, with an error of at most the depth of the tree, and exactly its share
/// whenever n is a multiple of W. Finding draw n takes O(log sources).
class Blend {
 public:
  /// Weights are whole numbers above zero; only their proportions count. Their sum stays below
  /// 2^62.
  explicit Blend(std::span<const std::uint64_t> weights);

  struct Draw {
    std::size_t source;
    std::uint64_t index;  ///< number of earlier draws from this source
    bool operator==(const Draw&) const = default;
  };
  /// Draw n, counted from 0.
  Draw operator()(std::uint64_t draw) const;
  /// Draws that each source has among the first `draws`.
  std::vector<std::uint64_t> counts(std::uint64_t draws) const;

 private:
  std::vector<std::uint64_t> prefix_;  // [sources + 1], sums of weights
};

}  // namespace trireme::data
