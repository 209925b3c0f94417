// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::train {

/// Counter of consecutive steps whose loss or gradient norm is not finite
/// (optimizer.skip_nonfinite). All ranks see the same numbers, so all decide alike without
/// communication.
class NonfiniteSteps {
 public:
  enum class Verdict {
    update,  ///< the gradients are finite
    skip,    ///< parameters and moments stay as they are
    stop     ///< one more than may be skipped
  };

  /// most: how many in a row may be skipped.
  explicit NonfiniteSteps(std::int64_t most) : most_(most) {}

  Verdict judge(double loss, double gradient_norm);
  std::int64_t in_a_row() const { return in_a_row_; }

 private:
  std::int64_t most_;
  std::int64_t in_a_row_ = 0;
};

}  // namespace trireme::train
