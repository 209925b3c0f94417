// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/box_runs.hpp"

namespace trireme::checkpoint {
namespace {

bool same_dimensions(const device::Tensor& tensor, const layout::Box& box) {
  if (static_cast<std::size_t>(tensor.rank()) != box.length.size()) return false;
  for (int index = 0; index < tensor.rank(); ++index) {
    if (tensor.dim(index) != box.length[static_cast<std::size_t>(index)]) return false;
  }
  return true;
}

layout::Shape row_major_strides(const layout::Shape& lengths) {
  layout::Shape strides(lengths.size(), 1);
  for (std::size_t index = lengths.size(); index-- > 1;) {
    strides[index - 1] = strides[index] * lengths[index];
  }
  return strides;
}

layout::Shape strides_of(const device::Tensor& tensor, const layout::Box& box) {
  if (!same_dimensions(tensor, box)) return row_major_strides(box.length);
  layout::Shape strides;
  for (int index = 0; index < tensor.rank(); ++index) strides.push_back(tensor.stride(index));
  return strides;
}

}  // namespace

bool holds(const device::Tensor& tensor, const layout::Box& box) {
  if (same_dimensions(tensor, box)) return true;
  return tensor.contiguous() && tensor.element_count() == layout::element_count(box);
}

BoxRuns::BoxRuns(const layout::Box& stored, const layout::Box& held, const device::Tensor& tensor,
                 const layout::Box& part) {
  TRIREME_EXPECT(holds(tensor, held),
                 "tensor " + tensor.text() + " does not hold the box " + layout::text(held));
  const auto stored_strides = row_major_strides(stored.length);
  const auto held_strides = strides_of(tensor, held);
  std::size_t inner = part.length.size();
  for (std::size_t index = 0; index < inner; ++index) {
    stored_origin_ += (part.offset[index] - stored.offset[index]) * stored_strides[index];
    held_origin_ += (part.offset[index] - held.offset[index]) * held_strides[index];
  }
  // A dimension joins the run while the next step along it continues where the run ends, on both
  // sides; one of length 1 never steps.
  while (inner > 0 && (part.length[inner - 1] == 1 || (stored_strides[inner - 1] == length_ &&
                                                       held_strides[inner - 1] == length_))) {
    length_ *= part.length[--inner];
  }
  for (std::size_t index = 0; index < inner; ++index) {
    outer_.push_back({part.length[index], stored_strides[index], held_strides[index]});
    count_ *= part.length[index];
  }
}

BoxRuns::Run BoxRuns::at(std::int64_t index) const {
  Run run{stored_origin_, held_origin_};
  for (std::size_t outer = outer_.size(); outer-- > 0;) {
    const auto& dimension = outer_[outer];
    const auto coordinate = index % dimension.length;
    index /= dimension.length;
    run.stored += coordinate * dimension.stored_stride;
    run.held += coordinate * dimension.held_stride;
  }
  return run;
}

std::int64_t BoxRuns::first_ending_after(std::int64_t stored_element) const {
  std::int64_t low = 0;
  std::int64_t high = count_;
  while (low < high) {
    const auto middle = low + (high - low) / 2;
    if (at(middle).stored + length_ > stored_element) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace trireme::checkpoint
