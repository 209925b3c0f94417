#pragma once

#include "trireme/device/tensor.hpp"

#include "device/cuda/blas.hpp"
#include "device/cuda/launcher.hpp"
#include "device/cuda/stream.hpp"

#include <map>

namespace trireme::device::cuda {

/// The products of linear layers by cuBLASLt: fp32 without TF32, bf16 with sums in fp32. How a
/// shape is computed is chosen by the library's heuristics at its first use and then stays, so that
/// a run repeats bit by bit.
class Products {
 public:
  Products(const Blas& blas, StreamView stream);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// y = x * transpose(w) + bias; a bias must have y's type.
  void forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
  void backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, bool accumulate);
  /// dw += transpose(dy) * x.
  void backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw);

 private:
  /// One product as the library sees it: column-major, so every matrix is its transpose.
  struct Shape;
  struct Plan;
  /// d = a' * b' (+ d), where a prime is a transposition if asked.
  void multiply(const Shape& shape, const void* a, const void* b, const Tensor& bias, void* d);
  Plan& plan_for(const Shape& shape);
  void check(cublasStatus_t status, const char* call) const;

  const Blas& blas_;
  StreamView stream_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::map<Shape, Plan> plans_;
};

}  // namespace trireme::device::cuda
