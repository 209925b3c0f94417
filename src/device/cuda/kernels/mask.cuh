// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/kernels/views.cuh"

#include <array>

namespace trireme::device::cuda {

/// The numbers of device::DropoutMask, for kernels.
class Mask {
 public:
  explicit Mask(const Dropout& dropout)
      : rate_(dropout.rate),
        kept_factor_(1.0F / (1.0F - dropout.rate)),
        seed_(dropout.seed),
        stream_(dropout.stream),
        first_row_(dropout.first_row),
        first_column_(dropout.first_column),
        width_(dropout.width) {
    if (dropout.row_base) row_base_ = simt::Global<const std::int32_t>(dropout.row_base.i32());
  }

  __device__ bool active() const { return rate_ > 0.0F; }

  /// The number of the first element of a row.
  __device__ std::int64_t first_of(std::int64_t row) const {
    auto number = first_row_ + row;
    if (row_base_) {
      const auto low = static_cast<std::uint32_t>(row_base_.load(0));
      const auto high = static_cast<std::int64_t>(row_base_.load(1));
      number += high * (std::int64_t{1} << 32) + low;
    }
    return number * width_ + first_column_;
  }

  /// 0, or 1 / (1 - rate), for the element with this number.
  __device__ float factor(std::int64_t index) const {
    const auto number = static_cast<std::uint64_t>(index);
    return factor_of(base::philox(seed_, stream_, number / 4), number % 4);
  }

  /// Multiplies neighbours from number `index` on; four of them share a counter.
  template <int N>
  __device__ void apply(std::int64_t index, Floats<N>& values) const {
    auto number = static_cast<std::uint64_t>(index);
    auto bits = base::philox(seed_, stream_, number / 4);
    for (int i = 0; i < N; ++i, ++number) {
      if (i > 0 && number % 4 == 0) bits = base::philox(seed_, stream_, number / 4);
      values[i] *= factor_of(bits, number % 4);
    }
  }

 private:
  /// Chosen, not indexed: an index that is no constant would move the numbers out of registers.
  __device__ float factor_of(const std::array<std::uint32_t, 4>& bits, std::uint64_t which) const {
    const auto low = which % 2 == 0 ? bits[0] : bits[1];
    const auto high = which % 2 == 0 ? bits[2] : bits[3];
    return base::uniform_from_bits(which < 2 ? low : high) >= rate_ ? kept_factor_ : 0.0F;
  }

  float rate_;
  float kept_factor_;
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::int64_t first_row_;
  std::int64_t first_column_;
  std::int64_t width_;
  simt::Global<const std::int32_t> row_base_;
};

}  // namespace trireme::device::cuda
