// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/runtime/stream.hpp"

#include <functional>
#include <vector>

namespace trireme::device::cuda {

/// Operands of one GEMM for timing it: memory of their own, aligned as the descriptor says, full of
/// random numbers (a GPU's clock depends on the bits that change).
class GemmScratch {
 public:
  GemmScratch(const GemmDescriptor& descriptor, StreamView stream);
  GemmOperands operands() const { return operands_; }
  /// Seconds of one call, by the GPU's own clock; the host waits.
  double seconds_of(const std::function<void()>& call);

 private:
  void* take(std::size_t elements, DType dtype, std::uint32_t alignment);
  void fill(void* memory, std::size_t bytes, DType dtype);

  StreamView stream_;
  std::vector<DeviceMemory> memory_;
  GemmOperands operands_;
  Event begin_;
  Event end_;
};

}  // namespace trireme::device::cuda
