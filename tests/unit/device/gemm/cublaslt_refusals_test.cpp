// SPDX-License-Identifier: Apache-2.0
// The stand-in's rules, against descriptions, algorithms and memory that break them.
#include "unit/device/gemm/cublaslt_stand_in.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::device::test;
using namespace trireme::device::test::stand_in;

TEST_CASE("descriptions that the documents do not allow are refused") {
  const auto is_refused = [](CublasltGemm& gemm, cublasStatus_t wanted) {
    const auto status = gemm.ask();
    INFO(controls().last_refusal);
    CHECK(status == wanted);
  };
  CublasltGemm::Shape bf16_shape{8, 4, 16, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_16BF, CUDA_R_16BF};
  SECTION("fp32 that becomes bf16") {
    CublasltGemm gemm(library(), {8, 4, 16, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_32F, CUDA_R_16BF});
    is_refused(gemm, unsupported);
  }
  SECTION("columns that overlap") {
    CublasltGemm gemm(library(), bf16_shape);
    REQUIRE(library().init_layout(&gemm.d, sizeof(gemm.d), CUDA_R_16BF, 8, 4, 7) == fine);
    is_refused(gemm, invalid);
  }
  SECTION("shapes that do not fit") {
    CublasltGemm gemm(library(), bf16_shape);
    gemm.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N);
    is_refused(gemm, invalid);
  }
  SECTION("aux without a leading dimension, or with an odd one") {
    CublasltGemm gemm(library(), bf16_shape);
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
    is_refused(gemm, invalid);
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{12});
    is_refused(gemm, invalid);
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{16});
    is_refused(gemm, fine);
  }
  SECTION("a bias of another type") {
    CublasltGemm gemm(library(), bf16_shape);
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS)
        .set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    is_refused(gemm, unsupported);
  }
  SECTION("an epilogue that is none, and a transposition that is none") {
    CublasltGemm gemm(library(), bf16_shape);
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, std::uint32_t{3});
    is_refused(gemm, unsupported);
    CublasltGemm other(library(), bf16_shape);
    other.set(CUBLASLT_MATMUL_DESC_TRANSB, std::int32_t{7});
    is_refused(other, invalid);
  }
}

TEST_CASE("an algorithm serves the product that it was named for, unchanged") {
  CublasltGemm one(library(), {4, 4, 4});
  CublasltGemm other(library(), {4, 4, 8});
  auto algorithm = plain_way(one);
  CHECK(one.check(algorithm) == fine);
  CHECK(other.check(algorithm) == invalid);
  for (auto& word : algorithm.data) {
    if (word == 0) continue;
    word ^= 1;
    CHECK(one.check(algorithm) == invalid);
    word ^= 1;
  }
}

TEST_CASE("matrices of one product lie apart, but for C and D") {
  alignas(256) float numbers[64]{};
  CublasltGemm gemm(library(), {4, 4, 4});
  for (const auto each :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    gemm.prefer(each, std::uint32_t{4});
  }
  const auto way = plain_way(gemm);
  gemm.a_at = gemm.b_at = numbers;
  gemm.d_at = numbers + 15;
  CHECK(gemm.multiply(way) == invalid);
  gemm.d_at = numbers + 16;
  CHECK(gemm.multiply(way, 1, 1) == fine);
  gemm.d_at = nullptr;
  CHECK(gemm.multiply(way) == invalid);
  // Columns of one matrix between those of another.
  for (auto* layout : {&gemm.a, &gemm.b, &gemm.d}) {
    REQUIRE(library().init_layout(layout, sizeof(*layout), CUDA_R_32F, 4, 4, 8) == fine);
  }
  const auto wide = plain_way(gemm);
  gemm.d_at = numbers + 4;
  CHECK(gemm.multiply(wide) == fine);
  gemm.d_at = numbers + 3;
  CHECK(gemm.multiply(wide) == invalid);
}

TEST_CASE("a test may refuse an epilogue, or have it fail") {
  CublasltGemm gemm(library(), {8, 4, 16, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_16BF, CUDA_R_16BF});
  gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  CHECK(gemm.ask() == fine);
  controls().refused_epilogue = CUBLASLT_EPILOGUE_BIAS;
  CHECK(gemm.ask() == unsupported);
  controls().refused_epilogue = 0;
}
