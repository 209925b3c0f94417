// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/tensor.hpp"

#include "comm/nccl/abi.hpp"

namespace trireme::comm::nccl {

inline DataType type_of(const device::Tensor& x) {
  switch (x.dtype()) {
    case device::DType::f32:
      return DataType::f32;
    case device::DType::bf16:
      return DataType::bf16;
    case device::DType::i32:
      return DataType::i32;
    case device::DType::e4m3:
      break;
  }
  return DataType::f32;
}

inline Reduction reduction_of(ReduceOp op) {
  return op == ReduceOp::sum ? Reduction::sum : Reduction::max;
}

inline std::size_t count_of(const device::Tensor& x) {
  return static_cast<std::size_t>(x.element_count());
}

}  // namespace trireme::comm::nccl
