// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "layout/ownership/sharing.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace trireme::layout {

/// Columns of one matrix: how many, and what each costs.
struct Columns {
  std::int64_t columns = 0;
  double flops = 0;
  std::int64_t elements = 0;
};

/// Division of the columns of matrices over the ranks of a group, such that no rank's load exceeds
/// a level that is as low as possible, nor its shard its limit.
class ColumnDivision {
 public:
  ColumnDivision(const SharingGroup& group, const OwnershipOptions& options)
      : group_(group), options_(options) {}

  void add(const Columns& matrix) { matrices_.push_back(matrix); }

  struct Divided {
    /// Of each matrix, ascending.
    std::vector<std::vector<ColumnRange>> ranges;
    std::vector<double> load;
    std::vector<std::int64_t> elements;
  };
  /// None if the shards have no room.
  std::optional<Divided> lowest() const;

 private:
  std::optional<Divided> below(double level) const;
  std::vector<std::int64_t> spread(std::int64_t columns,
                                   const std::function<std::int64_t(std::size_t)>& capacity,
                                   std::size_t ranks) const;

  const SharingGroup& group_;
  const OwnershipOptions& options_;
  std::vector<Columns> matrices_;
};

}  // namespace trireme::layout
