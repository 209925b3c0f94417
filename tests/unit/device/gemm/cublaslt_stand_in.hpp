// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"

#include "device/cuda/gemm/cublaslt.hpp"
#include "support/fake_cublaslt/opened.hpp"
#include "unit/device/gemm/cublaslt_gemm.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

/// The stand-in of cuBLASLt as tests of it call it.
namespace trireme::device::test::stand_in {

inline constexpr auto fine = CUBLAS_STATUS_SUCCESS;
inline constexpr auto invalid = CUBLAS_STATUS_INVALID_VALUE;
inline constexpr auto unsupported = CUBLAS_STATUS_NOT_SUPPORTED;
inline const float not_written = std::numeric_limits<float>::quiet_NaN();

inline const cuda::CublasLt& library() {
  return *base::value_or_throw(cuda::load_cublaslt());
}
inline trireme::testing::CublasltControls& controls() {
  static const trireme::testing::OpenedCublaslt opened(TRIREME_FAKE_CUBLASLT);
  return opened.controls();
}

/// Bits of exact numbers.
inline std::vector<std::uint16_t> bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> result;
  for (const float value : values) {
    result.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
  }
  return result;
}
inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

/// The last that the heuristics name: as documented, with sums in double.
inline const cublasLtMatmulAlgo_t& plain_way(CublasltGemm& gemm) {
  REQUIRE(gemm.ask() == fine);
  REQUIRE_FALSE(gemm.ways.empty());
  return gemm.ways.back().algo;
}

}  // namespace trireme::device::test::stand_in
