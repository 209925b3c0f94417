// SPDX-License-Identifier: Apache-2.0
// The stand-in of cuBLASLt, by itself: its sums against numbers worked by hand and against plain
// loops. Its work runs at once.
#include "unit/device/gemm/cublaslt_stand_in.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

using namespace trireme;
using namespace trireme::device::test;
using namespace trireme::device::test::stand_in;

// NOLINTNEXTLINE(readability-identifier-naming): the stand-in looks for it in the program.
extern "C" cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}

TEST_CASE("the stand-in is what the product finds where the environment says so") {
  const auto before = controls().plain;
  CublasltGemm gemm(library(), {1, 1, 1});
  alignas(256) float numbers[3]{3, 4, not_written};
  gemm.a_at = &numbers[0];
  gemm.b_at = &numbers[1];
  gemm.d_at = &numbers[2];
  for (const auto each :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    gemm.prefer(each, std::uint32_t{4});
  }
  CHECK(gemm.multiply(plain_way(gemm), 2.0F, 0.0F) == fine);
  CHECK(numbers[2] == 24.0F);
  CHECK(controls().plain == before + 1);
}

TEST_CASE("columns are columns, and a transposition is one") {
  // A is [2, 3] with rows 1 2 3 and 4 5 6; B is [3, 1] with 1, 10, 100.
  alignas(256) const float a_plain[]{1, 4, 2, 5, 3, 6};
  alignas(256) const float a_transposed[]{1, 2, 3, 4, 5, 6};
  alignas(256) const float b[]{1, 10, 100};
  for (const auto transpose_a : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const auto transpose_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      alignas(256) float d[]{not_written, 1};
      CublasltGemm gemm(library(), {2, 1, 3, transpose_a, transpose_b});
      gemm.a_at = transpose_a == CUBLAS_OP_N ? a_plain : a_transposed;
      gemm.b_at = b;
      gemm.d_at = d;
      CHECK(gemm.multiply(plain_way(gemm)) == fine);
      CHECK(d[0] == 321.0F);
      CHECK(d[1] == 654.0F);
      CHECK(gemm.multiply(plain_way(gemm), 1, 1) == fine);
      CHECK(d[0] == 642.0F);
    }
  }
}

TEST_CASE("each epilogue does what the header says of it") {
  // The product is [2, 3]: columns (1, 2), (10, 20), (-1, -2).
  const auto a = bf16({1, 2});
  const auto b = bf16({1, 10, -1});
  std::vector<std::uint16_t> d(6);
  std::vector<std::uint16_t> aux(24, 0);
  std::vector<std::uint16_t> bias(8);
  CublasltGemm gemm(library(), {2, 3, 1, CUBLAS_OP_N, CUBLAS_OP_N, CUDA_R_16BF, CUDA_R_16BF});
  gemm.a_at = a.data();
  gemm.b_at = b.data();
  gemm.d_at = d.data();
  for (const auto each :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    gemm.prefer(each, std::uint32_t{16});
  }
  void* const aux_at = aux.data();
  void* const bias_at = bias.data();
  gemm.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_at)
      .set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux_at)
      .set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{8});
  const auto gelu = [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  };

  SECTION("a bias is added to each column") {
    bias = bf16({100, 200, 0, 0, 0, 0, 0, 0});
    gemm.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias.data()));
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    CHECK(gemm.multiply(plain_way(gemm)) == fine);
    CHECK(d == bf16({101, 202, 110, 220, 99, 198}));
  }
  SECTION("a gelu writes what it took, column by column of aux") {
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_GELU_AUX);
    CHECK(gemm.multiply(plain_way(gemm)) == fine);
    CHECK(from_bf16(d[0]) == Approx(gelu(1)).epsilon(0.004));
    CHECK(from_bf16(d[5]) == Approx(gelu(-2)).epsilon(0.004));
    CHECK(from_bf16(aux[0]) == 1.0F);
    CHECK(from_bf16(aux[1]) == 2.0F);
    CHECK(aux[2] == 0);
    CHECK(from_bf16(aux[17]) == -2.0F);
  }
  SECTION("a gelu's gradient is the slope at aux") {
    aux[8] = bf16({0.5F})[0];
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
    CHECK(gemm.multiply(plain_way(gemm)) == fine);
    // Half at 0; by a central difference elsewhere.
    CHECK(from_bf16(d[0]) == 0.5F);
    CHECK(from_bf16(d[2]) == Approx(10 * (gelu(0.5001) - gelu(0.4999)) / 0.0002).epsilon(0.004));
  }
  SECTION("the sums of B go over the inner dimension, one for each column of D") {
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BGRADB);
    CHECK(gemm.multiply(plain_way(gemm)) == fine);
    CHECK(bias[0] == bf16({1})[0]);
    CHECK(bias[1] == bf16({10})[0]);
    CHECK(bias[2] == bf16({-1})[0]);
    CHECK(bias[3] == 0);
    CHECK(d[1] == bf16({2})[0]);
  }
  SECTION("what was promised of an address is held to") {
    gemm.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    const auto way = plain_way(gemm);
    const void* const beside = bias.data() + 1;
    gemm.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside);
    CHECK(gemm.multiply(way) == invalid);
    // Who tells no address promises that of all.
    gemm.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(nullptr));
    const auto untold = plain_way(gemm);
    gemm.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside);
    CHECK(gemm.multiply(untold) == invalid);
    const auto told = plain_way(gemm);
    CHECK(gemm.multiply(told) == fine);
  }
}

TEST_CASE("FP8 is scaled, and refused as the documents say") {
  alignas(256) std::uint8_t a[16 * 16]{};
  alignas(256) std::uint8_t b[16]{};
  alignas(256) float d[16]{};
  alignas(256) const float scales[]{0.5F, 4.0F};
  a[0] = 0x38;  // 1
  a[1] = 0x7E;  // 448
  b[0] = 0x3C;  // 1.5
  b[1] = 0x01;  // 2^-9
  CublasltGemm gemm(library(), {16, 1, 16, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_8F_E4M3, CUDA_R_32F});
  const void* const scale_a = &scales[0];
  const void* const scale_b = &scales[1];
  gemm.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_a)
      .set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, scale_b);
  gemm.a_at = a;
  gemm.b_at = b;
  gemm.d_at = d;
  CHECK(gemm.multiply(plain_way(gemm)) == fine);
  CHECK(d[0] == 2.0F * (1.5F + 448.0F / 512.0F));
  CHECK(d[1] == 0.0F);

  CHECK(gemm.set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_N).ask() == unsupported);
  CublasltGemm narrow(library(), {16, 1, 8, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_8F_E4M3, CUDA_R_32F});
  CHECK(narrow.ask() == unsupported);
  CublasltGemm scaled(library(), {16, 1, 16});
  CHECK(scaled.set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, scale_a).ask() == invalid);
  CublasltGemm crooked(library(),
                       {16, 1, 16, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_8F_E4M3, CUDA_R_32F});
  CHECK(crooked.prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{4}).ask() == fine);
  CHECK(crooked.ways.empty());
}

TEST_CASE("several ways are named, of which one is marked, one breaks and one takes workspace") {
  alignas(256) float numbers[64]{};
  alignas(256) float workspace[64]{};
  for (int at = 0; at < 8; ++at) numbers[at] = static_cast<float>(at + 1);
  CublasltGemm gemm(library(), {4, 4, 4});
  gemm.a_at = gemm.b_at = numbers;
  gemm.d_at = numbers + 16;
  gemm.prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, std::uint32_t{64})
      .prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::uint32_t{64});
  REQUIRE(gemm.ask() == fine);
  const auto without_workspace = gemm.ways.size();
  gemm.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{sizeof(workspace)});
  REQUIRE(gemm.ask() == fine);
  CHECK(gemm.ways.size() == without_workspace + 2);
  gemm.prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
              std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  REQUIRE(gemm.ask() == fine);
  CHECK(gemm.ways.size() == without_workspace + 1);
  int marked = 0;
  int failed = 0;
  int with_workspace = 0;
  for (const auto& way : gemm.ways) {
    if (way.state != fine) {
      ++marked;
      CHECK(gemm.check(way.algo) == unsupported);
      continue;
    }
    CHECK(gemm.check(way.algo) == fine);
    CHECK(gemm.checked.workspaceSize == way.workspaceSize);
    gemm.workspace = nullptr;
    gemm.workspace_bytes = 0;
    if (way.workspaceSize > 0) {
      ++with_workspace;
      CHECK(gemm.multiply(way.algo) == invalid);
      gemm.workspace = workspace;
      gemm.workspace_bytes = way.workspaceSize - 1;
      CHECK(gemm.multiply(way.algo) == invalid);
      gemm.workspace_bytes = sizeof(workspace);
    }
    const auto status = gemm.multiply(way.algo);
    if (status == fine) continue;
    CHECK(status == CUBLAS_STATUS_EXECUTION_FAILED);
    ++failed;
  }
  CHECK(marked == 1);
  CHECK(failed == 1);
  CHECK(with_workspace == 1);
  // Halves of sums were there; what was not written is poison.
  CHECK(workspace[0] == 1 + 5 * 2);
  CHECK(std::isnan(workspace[63]));
}

TEST_CASE("parts of a sum are rounded to the result's type unless that is not wanted") {
  // 257 is no bf16: rounded before it meets the other half, the sum is 0.
  const auto a = bf16({256, 1, -256, 0});
  const auto b = bf16({1, 1, 1, 1});
  alignas(256) std::uint16_t d[1]{};
  alignas(256) float workspace[64]{};
  CublasltGemm gemm(library(), {1, 1, 4, CUBLAS_OP_T, CUBLAS_OP_N, CUDA_R_16BF, CUDA_R_16BF});
  gemm.a_at = a.data();
  gemm.b_at = b.data();
  gemm.d_at = d;
  gemm.workspace = workspace;
  gemm.workspace_bytes = sizeof(workspace);
  gemm.prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{sizeof(workspace)})
      .prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, std::uint32_t{16})
      .prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, std::uint32_t{16});
  const auto results = [&] {
    REQUIRE(gemm.ask() == fine);
    std::multiset<float> all;
    for (const auto& way : gemm.ways) {
      if (way.state == fine && gemm.multiply(way.algo) == fine) all.insert(from_bf16(d[0]));
    }
    return all;
  };
  const auto without = results();
  CHECK(without.count(0.0F) == 1);
  CHECK(without.count(1.0F) == without.size() - 1);
  gemm.prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
              std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  const auto with = results();
  CHECK(with.count(1.0F) == with.size());
  CHECK(with.size() == without.size() - 1);
}
