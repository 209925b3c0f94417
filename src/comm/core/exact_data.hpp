// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <array>
#include <optional>

namespace trireme::comm {

/// Whole numbers that repeat with a period that no part or piece is a multiple of: each is exact
/// in bf16, sums over ranks are exact in fp32, and a piece put at a wrong place shows.
class ExactData {
 public:
  static constexpr std::int64_t period = 251;

  /// Contribution of `rank`: element i is (i + 31 * rank) mod 251.
  static ExactData of_rank(int rank);
  /// Element by element, the sum of what ranks 0 to `ranks` - 1 give.
  static ExactData sum_of(int ranks);
  /// Constant that no rank contributes and no sum has.
  static ExactData poison();

  /// Element i of `x` becomes element `first` + i, rounded to its type (f32 or bf16).
  void fill(const device::Tensor& x, std::int64_t first = 0) const;

  struct Difference {
    std::int64_t index;
    float found;
    float due;
  };
  /// The first element of `x` that is not what fill would have written.
  std::optional<Difference> compare(const device::Tensor& x, std::int64_t first = 0) const;

 private:
  float at(std::int64_t index) const { return values_[static_cast<std::size_t>(index % period)]; }

  std::array<float, period> values_{};
};

}  // namespace trireme::comm
