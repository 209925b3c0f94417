#pragma once

#include "device/cuda/gemm/cublaslt_gemm.hpp"

namespace trireme::device::cuda {

/// A product as the library is told of it, and what computes it.
struct Products::Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t d{};
  Algorithm algorithm{};
};

}  // namespace trireme::device::cuda
