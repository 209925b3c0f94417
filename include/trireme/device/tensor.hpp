// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/device/dtype.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace trireme::device {

/// A view of numbers in some memory: where, what type, what shape. Owns nothing; arenas own.
/// Up to four dimensions, the last one contiguous, the others with strides, so that a slice of
/// heads or columns of a wider matrix is a tensor too.
class Tensor {
 public:
  static constexpr int max_rank = 4;

  Tensor() = default;
  /// Contiguous, row-major.
  Tensor(void* data, DType dtype, std::initializer_list<std::int64_t> shape);

  explicit operator bool() const { return data_ != nullptr; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  std::int64_t dim(int index) const { return dims_[at(index)]; }
  /// Elements between neighbours along a dimension.
  std::int64_t stride(int index) const { return strides_[at(index)]; }
  std::int64_t element_count() const;
  std::size_t byte_count() const {
    return static_cast<std::size_t>(element_count()) * size_of(dtype_);
  }
  bool contiguous() const;

  void* raw() const { return data_; }
  float* f32() const { return typed<float>(DType::f32); }
  Bf16* bf16() const { return typed<Bf16>(DType::bf16); }
  std::int32_t* i32() const { return typed<std::int32_t>(DType::i32); }
  E4m3* e4m3() const { return typed<E4m3>(DType::e4m3); }

  /// Elements [begin, begin + count) along a dimension.
  Tensor slice(int dimension, std::int64_t begin, std::int64_t count) const;
  /// The same elements of a contiguous tensor in another shape.
  Tensor reshape(std::initializer_list<std::int64_t> shape) const;
  /// Likewise, as a vector.
  Tensor flat() const { return reshape({element_count()}); }
  /// Splits dimension `dimension` of length n into [n / inner, inner]; works on slices too.
  Tensor split(int dimension, std::int64_t inner) const;
  /// The same shape and strides elsewhere: a copy on another device.
  Tensor moved_to(void* data) const {
    Tensor other = *this;
    other.data_ = data;
    return other;
  }
  /// "bf16 [8, 128]".
  std::string text() const;

 private:
  std::size_t at(int index) const {
    TRIREME_EXPECT(index >= 0 && index < rank_, "tensor dimension out of range");
    return static_cast<std::size_t>(index);
  }
  template <typename T>
  T* typed(DType wanted) const {
    TRIREME_EXPECT(dtype_ == wanted, "tensor holds another type");
    return static_cast<T*>(data_);
  }

  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  int rank_ = 0;
  std::array<std::int64_t, max_rank> dims_{};
  std::array<std::int64_t, max_rank> strides_{};
};

}  // namespace trireme::device
