// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/tensor.hpp"

#include "trireme/base/format.hpp"

#include <vector>

namespace trireme::device {

const char* name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::e4m3:
      return "e4m3";
  }
  return "?";
}

Tensor::Tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape)
    : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
  TRIREME_EXPECT(shape.size() <= max_rank, "a tensor has at most four dimensions");
  std::size_t index = 0;
  for (const auto length : shape) {
    TRIREME_EXPECT(length >= 0, "a dimension cannot be negative");
    dims_[index++] = length;
  }
  std::int64_t stride = 1;
  while (index-- > 0) {
    strides_[index] = stride;
    stride *= dims_[index];
  }
}

std::int64_t Tensor::element_count() const {
  if (data_ == nullptr) return 0;
  std::int64_t count = 1;
  for (int index = 0; index < rank_; ++index) count *= dim(index);
  return count;
}

bool Tensor::contiguous() const {
  std::int64_t expected = 1;
  for (int index = rank_ - 1; index >= 0; --index) {
    if (dim(index) != 1 && stride(index) != expected) return false;
    expected *= dim(index);
  }
  return true;
}

Tensor Tensor::slice(int dimension, std::int64_t begin, std::int64_t count) const {
  TRIREME_EXPECT(begin >= 0 && count >= 0 && begin + count <= dim(dimension),
                 base::format("slice [{}, {}) of dimension {} of {}", begin, begin + count,
                              dimension, text()));
  Tensor part = *this;
  part.dims_[at(dimension)] = count;
  // Integer arithmetic: addresses of a measuring arena are not pointers into any object.
  const auto offset = static_cast<std::uintptr_t>(begin * stride(dimension)) * size_of(dtype_);
  part.data_ = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data_) + offset);
  return part;
}

Tensor Tensor::reshape(std::initializer_list<std::int64_t> shape) const {
  TRIREME_EXPECT(contiguous(), "only a contiguous tensor has other shapes: " + text());
  Tensor other(data_, dtype_, shape);
  TRIREME_EXPECT(other.element_count() == element_count(), "a reshape keeps the element count");
  return other;
}

Tensor Tensor::split(int dimension, std::int64_t inner) const {
  TRIREME_EXPECT(rank_ < max_rank && inner > 0 && dim(dimension) % inner == 0,
                 base::format("splitting dimension {} of {} by {}", dimension, text(), inner));
  Tensor parts = *this;
  const auto place = at(dimension);
  for (auto index = static_cast<std::size_t>(rank_); index > place + 1; --index) {
    parts.dims_[index] = dims_[index - 1];
    parts.strides_[index] = strides_[index - 1];
  }
  parts.rank_ = rank_ + 1;
  parts.dims_[place] = dims_[place] / inner;
  parts.strides_[place] = strides_[place] * inner;
  parts.dims_[place + 1] = inner;
  parts.strides_[place + 1] = strides_[place];
  return parts;
}

std::string Tensor::text() const {
  std::vector<std::int64_t> shape(dims_.begin(), dims_.begin() + rank_);
  return base::format("{} [{}]", name(dtype_), base::join(shape, ", "));
}

}  // namespace trireme::device
