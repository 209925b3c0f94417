// SPDX-License-Identifier: Apache-2.0
// Batches of matrices in the stand-in of cuBLASLt.
#include "trireme/base/error.hpp"

#include "device/cuda/gemm/cublaslt.hpp"
#include "support/fake_cublaslt/opened.hpp"
#include "unit/device/gemm/cublaslt_gemm.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace trireme;
using device::test::CublasltGemm;

namespace {

constexpr auto fine = CUBLAS_STATUS_SUCCESS;
constexpr auto invalid = CUBLAS_STATUS_INVALID_VALUE;
constexpr auto unsupported = CUBLAS_STATUS_NOT_SUPPORTED;

const device::cuda::CublasLt& library() {
  return *base::value_or_throw(device::cuda::load_cublaslt());
}
testing::CublasltControls& controls() {
  static const testing::OpenedCublaslt opened(TRIREME_FAKE_CUBLASLT);
  return opened.controls();
}

}  // namespace

TEST_CASE("matrices of a batch are multiplied each, a stride apart, as many as the test allows") {
  // Two matrices [1, 1], of which A's lie two elements apart and C's are one and the same.
  alignas(256) const float a[]{2, 0, 3};
  alignas(256) const float b[]{5, 7};
  const float not_written = std::numeric_limits<float>::quiet_NaN();
  alignas(256) float d[]{not_written, not_written, not_written};
  CublasltGemm gemm(library(), {1, 1, 1});
  for (const auto each :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    gemm.prefer(each, std::uint32_t{4});
  }
  REQUIRE(gemm.ask() == fine);
  // The last that the heuristics name: as documented, with sums in double.
  const auto way = gemm.ways.back().algo;
  const auto set = [&](cublasLtMatrixLayoutOpaque_t& layout, std::int32_t count,
                       std::int64_t stride) {
    CHECK(library().set_layout(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                               sizeof(count)) == fine);
    CHECK(library().set_layout(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                               sizeof(stride)) == fine);
  };
  gemm.a_at = a;
  gemm.b_at = b;
  gemm.d_at = d;
  set(gemm.a, 2, 2);
  set(gemm.b, 2, 1);
  CHECK(gemm.check(way) == invalid);
  set(gemm.d, 2, 1);
  CHECK(gemm.check(way) == fine);
  const auto batches = controls().batches;
  CHECK(gemm.multiply(way) == fine);
  CHECK(controls().batches == batches + 1);
  CHECK(d[0] == 10.0F);
  CHECK(d[1] == 21.0F);
  CHECK(std::isnan(d[2]));
  // Results of both at one place.
  set(gemm.d, 2, 0);
  CHECK(gemm.multiply(way) == invalid);
  set(gemm.d, 2, 1);
  controls().most_matrices = 1;
  CHECK(gemm.check(way) == unsupported);
  controls().most_matrices = std::numeric_limits<std::uint64_t>::max();
}
