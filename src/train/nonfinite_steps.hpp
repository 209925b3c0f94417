// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace trireme::train {

/// Counts steps in a row whose loss or gradient norm is not finite (optimizer.skip_nonfinite). All
/// ranks see the same numbers, so all come to the same verdict without a word.
class NonfiniteSteps {
 public:
  enum class Verdict {
    update,  ///< the gradients are good
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

/// The number; "nan" whatever its sign, which says nothing.
std::string number_text(double value);

}  // namespace trireme::train
