// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/gemm/cublaslt.hpp"

#include <cstdint>
#include <vector>

namespace trireme::device::test {

/// d = op(a) * op(b) and more, described to a library of cuBLASLt's functions as a caller does:
/// column-major matrices in host memory, packed unless told.
class CublasltGemm {
 public:
  struct Shape {
    std::uint64_t m = 0;
    std::uint64_t n = 0;
    std::uint64_t k = 0;
    cublasOperation_t transpose_a = CUBLAS_OP_N;
    cublasOperation_t transpose_b = CUBLAS_OP_N;
    cudaDataType_t in = CUDA_R_32F;
    cudaDataType_t out = CUDA_R_32F;
  };

  CublasltGemm(const cuda::CublasLt& library, const Shape& shape);
  ~CublasltGemm();
  CublasltGemm(const CublasltGemm&) = delete;
  CublasltGemm& operator=(const CublasltGemm&) = delete;

  template <typename T>
  CublasltGemm& set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    last_ = library_.set_operation(&operation_, attribute, static_cast<const void*>(&value),
                                   sizeof(value));
    return *this;
  }
  template <typename T>
  CublasltGemm& prefer(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    last_ = library_.set_preference(&preference_, attribute, &value, sizeof(value));
    return *this;
  }
  /// Status of the last setting.
  cublasStatus_t last() const { return last_; }

  /// Asks for the ways that the library names, up to 16.
  cublasStatus_t ask();
  cublasStatus_t check(const cublasLtMatmulAlgo_t& algorithm);
  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm, float alpha = 1, float beta = 0);

  const Shape shape;
  std::vector<cublasLtMatmulHeuristicResult_t> ways;
  cublasLtMatmulHeuristicResult_t checked{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t d{};
  // Where the matrices lie.
  const void* a_at = nullptr;
  const void* b_at = nullptr;
  void* d_at = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;

 private:
  const cuda::CublasLt& library_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDescOpaque_t operation_{};
  cublasLtMatmulPreferenceOpaque_t preference_{};
  cublasStatus_t last_ = CUBLAS_STATUS_SUCCESS;
};

}  // namespace trireme::device::test
