// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace trireme::ownership {

/// Columns of one matrix: how many, and what each costs.
struct Columns {
  std::int64_t columns = 0;
  double flops = 0;
};

/// Division of the columns of matrices over ranks, such that no rank's load exceeds a level that is
/// as low as possible.
class ColumnDivision {
 public:
  /// `load`: FLOPs of each rank so far. A rank takes at least `least_columns` of a matrix, where it
  /// has enough.
  ColumnDivision(std::vector<double> load, std::int64_t least_columns)
      : load_(std::move(load)), least_columns_(least_columns) {}

  void add(const Columns& matrix) { matrices_.push_back(matrix); }

  struct Divided {
    /// Ranges of each matrix, ascending.
    std::vector<std::vector<ColumnRange>> ranges;
    std::vector<double> load;
  };
  Divided lowest() const;

 private:
  std::optional<Divided> below(double level) const;
  std::vector<std::int64_t> spread(std::int64_t columns,
                                   const std::function<std::int64_t(std::size_t)>& capacity,
                                   std::size_t ranks) const;

  std::vector<double> load_;
  std::int64_t least_columns_;
  std::vector<Columns> matrices_;
};

}  // namespace trireme::ownership
