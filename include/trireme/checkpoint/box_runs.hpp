// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/tensor.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <vector>

namespace trireme::checkpoint {

/// True if the tensor can hold the box's elements: it has the same dimensions, or is a contiguous
/// run of the same element count.
bool holds(const device::Tensor& tensor, const layout::Box& box);

/// The runs of `part` that are contiguous both in a stored box (row-major, without gaps) and in
/// the tensor that holds another box, strides and all. Nothing is materialised, so a column slice
/// with millions of runs costs nothing to describe. Runs ascend in the stored box.
class BoxRuns {
 public:
  struct Run {
    std::int64_t stored;  ///< element index inside the stored box
    std::int64_t held;    ///< element distance from the tensor's first element
  };

  /// `part` lies inside both boxes; `tensor` holds `held`.
  BoxRuns(const layout::Box& stored, const layout::Box& held, const device::Tensor& tensor,
          const layout::Box& part);

  std::int64_t count() const { return count_; }
  /// Elements of every run.
  std::int64_t length() const { return length_; }
  Run at(std::int64_t index) const;
  /// Index of the first run that ends after this element of the stored box.
  std::int64_t first_ending_after(std::int64_t stored_element) const;
  /// Element range of the stored box from the first run's begin to the last run's end.
  std::int64_t stored_begin() const { return at(0).stored; }
  std::int64_t stored_end() const { return at(count_ - 1).stored + length_; }

 private:
  struct Dimension {
    std::int64_t length;
    std::int64_t stored_stride;
    std::int64_t held_stride;
  };
  std::vector<Dimension> outer_;  // outermost first
  std::int64_t stored_origin_ = 0;
  std::int64_t held_origin_ = 0;
  std::int64_t count_ = 1;
  std::int64_t length_ = 1;
};

}  // namespace trireme::checkpoint
