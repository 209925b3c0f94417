#pragma once

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/runtime/stream.hpp"

#include <functional>
#include <vector>

namespace trireme::device::cuda {

/// Operands of one product for timing it: memory of their own, aligned as the product says, full of
/// random numbers (a card's clock depends on the bits that change).
class ProductScratch {
 public:
  ProductScratch(const MatrixProduct& product, StreamView stream);
  ProductOperands operands() const { return operands_; }
  /// Of one call, by the card's own clock; the host waits.
  double seconds_of(const std::function<void()>& call);

 private:
  void* take(std::size_t elements, DType dtype, std::uint32_t alignment);
  void fill(void* memory, std::size_t bytes, DType dtype);

  StreamView stream_;
  std::vector<DeviceMemory> memory_;
  ProductOperands operands_;
  Event begin_;
  Event end_;
};

}  // namespace trireme::device::cuda
