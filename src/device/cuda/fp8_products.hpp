#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cuda/blas.hpp"
#include "device/cuda/stream.hpp"

#include <map>

namespace trireme::device::cuda {

/// Products of e4m3 by cuBLASLt, with scales that the card reads and sums in fp32 ("fast
/// accumulation", which adds with fewer bits, is off). Needs compute capability 8.9; Hopper
/// multiplies codes only where both operands have the inner dimension in one run, as x [rows, in]
/// and w [out, in] have it. How a shape is computed is chosen at its first use and then stays.
class Fp8Products {
 public:
  /// Opens nothing until the first product. `workspace`, of product_workspace_bytes, is shared with
  /// other products of the stream.
  Fp8Products(const Blas& blas, StreamView stream, void* workspace)
      : blas_(blas), stream_(stream), workspace_(workspace) {}
  ~Fp8Products();
  Fp8Products(const Fp8Products&) = delete;
  Fp8Products& operator=(const Fp8Products&) = delete;

  /// y = (x * transpose(w)) * both unscales + bias; y and bias are bf16.
  void forward(const Quantised& x, const Quantised& w, const Tensor& bias, const Tensor& y);

 private:
  struct Shape {
    std::int64_t rows = 0;
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t stride_y = 0;
    std::uint32_t alignment_y = 0;
    bool bias = false;

    auto operator<=>(const Shape&) const = default;
  };
  /// As the library sees it: column-major, so y is w' * x.
  struct Plan {
    cublasLtMatmulDescOpaque_t operation{};
    cublasLtMatrixLayoutOpaque_t w{};
    cublasLtMatrixLayoutOpaque_t x{};
    cublasLtMatrixLayoutOpaque_t y{};
    cublasLtMatmulAlgo_t algorithm{};
    bool chosen = false;
  };
  /// Made at its first use; its algorithm is chosen once its scales and bias are known.
  Plan& plan_for(const Shape& shape);
  void describe(const Shape& shape, Plan& plan) const;
  void choose(const Shape& shape, Plan& plan) const;
  void set(Plan& plan, cublasLtMatmulDescAttributes_t attribute, const void* value,
           std::size_t bytes) const;
  void check(cublasStatus_t status, const char* call) const;

  const Blas& blas_;
  StreamView stream_;
  cublasLtHandle_t handle_ = nullptr;
  void* workspace_;
  std::map<Shape, Plan> plans_;
};

}  // namespace trireme::device::cuda
