// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/norm.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void NormForward::check() const {
  const Rows rows(x);
  TRIREME_EXPECT(same_shape(x, y) && are_runs(rows.width(), weight) &&
                     are_runs_if_any(rows.width(), bias) &&
                     are_runs_if_any(rows.count(), mean, rstd),
                 text_of(*this));
  TRIREME_EXPECT(!residual || (sum && same_shape(x, residual, sum)), text_of(*this));
}

void NormBackward::check() const {
  const Rows rows(dy);
  TRIREME_EXPECT(same_shape(dy, x, dx) && (!d_residual || same_shape(dy, d_residual)),
                 text_of(*this));
  TRIREME_EXPECT(are_runs(rows.width(), weight, d_weight) &&
                     are_runs_if_any(rows.width(), d_bias) && are_runs(rows.count(), rstd) &&
                     (kind != NormKind::layer || are_runs(rows.count(), mean)),
                 text_of(*this));
}

}  // namespace trireme::device
