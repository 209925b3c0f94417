// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

/// Calls `body` with a value whose type is the tensor's element type, float or Bf16.
template <typename Body>
void with_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32:
      body(float{});
      return;
    case DType::bf16:
      body(Bf16{});
      return;
    case DType::i32:
    case DType::e4m3:
      break;
  }
  TRIREME_EXPECT(false, "kernels compute on f32 or bf16");
}

/// The first element, typed; null for an empty tensor.
template <typename T>
T* data_of(const Tensor& tensor);
template <>
inline float* data_of<float>(const Tensor& tensor) {
  return tensor ? tensor.f32() : nullptr;
}
template <>
inline Bf16* data_of<Bf16>(const Tensor& tensor) {
  return tensor ? tensor.bf16() : nullptr;
}
template <>
inline E4m3* data_of<E4m3>(const Tensor& tensor) {
  return tensor ? tensor.e4m3() : nullptr;
}

inline void assign(float& place, float value) {
  place = value;
}
inline void assign(Bf16& place, float value) {
  place = to_bf16(value);
}

}  // namespace trireme::device
