// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace trireme::perf {

struct Compared {
  std::string cell;
  double predicted = 0;
  double measured = 0;
};

/// How well predictions order the layouts of one model on the same GPUs with the same batch.
struct Order {
  int cells = 0;
  /// Cells whose fastest layout is among the first three.
  int hits = 0;
  /// [cell]: time of the first choice over the fastest, less 1.
  std::vector<double> lost;
};

/// Order within the cells that have at least five layouts.
Order order_of(const std::vector<Compared>& rows);

/// Value below which a part (0 to 1) of the list lies, which is not empty.
double quantile(std::vector<double> values, double part);

}  // namespace trireme::perf
