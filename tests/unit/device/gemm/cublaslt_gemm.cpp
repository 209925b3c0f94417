// SPDX-License-Identifier: Apache-2.0
#include "unit/device/gemm/cublaslt_gemm.hpp"

#include <catch2/catch.hpp>

namespace trireme::device::test {
namespace {

constexpr auto fine = CUBLAS_STATUS_SUCCESS;

}  // namespace

CublasltGemm::CublasltGemm(const cuda::CublasLt& library, const Shape& its_shape)
    : shape(its_shape), library_(library) {
  REQUIRE(library.create(&handle_) == fine);
  REQUIRE(library.init_operation(&operation_, sizeof(operation_), CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
          fine);
  REQUIRE(library.init_preference(&preference_, sizeof(preference_)) == fine);
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b);
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, cudaDataType_t type, bool plain,
                          std::uint64_t rows, std::uint64_t columns) {
    if (!plain) std::swap(rows, columns);
    REQUIRE(library.init_layout(&matrix, sizeof(matrix), type, rows, columns,
                                static_cast<std::int64_t>(rows)) == fine);
  };
  layout(a, shape.in, shape.transpose_a == CUBLAS_OP_N, shape.m, shape.k);
  layout(b, shape.in, shape.transpose_b == CUBLAS_OP_N, shape.k, shape.n);
  layout(d, shape.out, true, shape.m, shape.n);
}

CublasltGemm::~CublasltGemm() {
  library_.destroy(handle_);
}

cublasStatus_t CublasltGemm::ask() {
  ways.resize(16);
  int found = 0;
  const auto status = library_.heuristic(handle_, &operation_, &a, &b, &d, &d, &preference_,
                                         static_cast<int>(ways.size()), ways.data(), &found);
  ways.resize(static_cast<std::size_t>(found));
  return status;
}

cublasStatus_t CublasltGemm::check(const cublasLtMatmulAlgo_t& algorithm) {
  return library_.check_algorithm(handle_, &operation_, &a, &b, &d, &d, &algorithm, &checked);
}

cublasStatus_t CublasltGemm::multiply(const cublasLtMatmulAlgo_t& algorithm, float alpha,
                                      float beta) {
  return library_.matmul(handle_, &operation_, &alpha, a_at, &a, b_at, &b, &beta, d_at, &d, d_at,
                         &d, &algorithm, workspace, workspace_bytes, nullptr);
}

}  // namespace trireme::device::test
