// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/cross_entropy.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void CrossEntropyStats::check() const {
  const auto rows = Rows(logits).count();
  TRIREME_EXPECT(are_runs(rows, targets) && has_shape(stats, {3, rows}), text_of(*this));
}

void CrossEntropyGradient::check() const {
  TRIREME_EXPECT(
      are_runs(Rows(logits).count(), targets, lse) && (!factor || has_shape(factor, {1})),
      text_of(*this));
}

void CrossEntropyCombine::check() const {
  TRIREME_EXPECT(
      is_batch(stats) && stats.dim(1) == 3 && are_runs(stats.dim(2), targets, lse, losses),
      text_of(*this));
}

}  // namespace trireme::device
