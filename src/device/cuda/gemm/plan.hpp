// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/gemm/linear_gemm.hpp"

namespace trireme::device::cuda {

/// GEMM as it is described to the library, and the algorithm that computes it.
struct LinearGemm::Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t c{};
  cublasLtMatrixLayoutOpaque_t d{};
  Algorithm algorithm{};
};

}  // namespace trireme::device::cuda
