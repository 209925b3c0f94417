// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"

#include <array>
#include <cstdint>

namespace trireme::device {

/// The rows of a tensor: every dimension but the last, in order. Neighbouring dimensions that
/// follow each other in memory are merged, so that the usual tensor costs no division. An empty
/// tensor has no rows.
class Rows {
 public:
  explicit Rows(const Tensor& tensor) : count_(tensor ? 1 : 0) {
    const int rank = tensor.rank();
    width_ = rank == 0 ? 1 : tensor.dim(rank - 1);
    for (int index = rank - 2; index >= 0; --index)
      prepend(tensor.dim(index), tensor.stride(index));
  }

  std::int64_t count() const { return count_; }
  std::int64_t width() const { return width_; }
  /// Elements from the first element of the tensor to the first of a row.
  std::int64_t offset(std::int64_t row) const {
    std::int64_t elements = 0;
    for (std::size_t index = 0; index + 1 < levels_; ++index) {
      elements += row % dims_[index] * strides_[index];
      row /= dims_[index];
    }
    return levels_ == 0 ? 0 : elements + row * strides_[levels_ - 1];
  }
  /// Neighbouring dimensions that do not follow each other in memory, innermost first.
  std::size_t levels() const { return levels_; }
  std::int64_t level_length(std::size_t level) const { return dims_[level]; }
  std::int64_t level_stride(std::size_t level) const { return strides_[level]; }
  /// True if every row begins a multiple of `elements` after the first.
  bool spaced_by_multiples_of(std::int64_t elements) const {
    for (std::size_t index = 0; index < levels_; ++index) {
      if (strides_[index] % elements != 0) return false;
    }
    return true;
  }
  /// True if one stride separates all neighbouring rows; the row count does not matter when it is
  /// one.
  bool evenly_spaced() const { return levels_ <= 1; }
  std::int64_t stride() const { return levels_ == 0 ? width_ : strides_[0]; }

 private:
  /// Adds an outer dimension.
  void prepend(std::int64_t length, std::int64_t stride) {
    count_ *= length;
    if (length == 1) return;
    if (levels_ > 0 && stride == dims_[levels_ - 1] * strides_[levels_ - 1]) {
      dims_[levels_ - 1] *= length;
      return;
    }
    dims_[levels_] = length;
    strides_[levels_++] = stride;
  }

  std::int64_t count_ = 0;
  std::int64_t width_ = 0;
  std::size_t levels_ = 0;
  /// Lengths of the merged dimensions, innermost first.
  std::array<std::int64_t, Tensor::max_rank> dims_{};
  std::array<std::int64_t, Tensor::max_rank> strides_{};
};

}  // namespace trireme::device
