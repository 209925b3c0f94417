// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

/// The stand-in's own contents of cuBLASLt's opaque structures.
namespace trireme::testing::cublaslt {

/// Says why on stderr and to the controls; gives the status back.
cublasStatus_t refuse(cublasStatus_t status, const std::string& reason);

/// cublasLtMatmulDescOpaque_t. Fields hold what was set, right or wrong: like the library, setting
/// looks at sizes alone, and values are judged when a product is asked about.
struct Operation {
  std::uint64_t mark = 0;
  std::int32_t compute = 0;
  std::int32_t scale_type = 0;
  std::int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N;
  std::int32_t transpose_b = CUBLAS_OP_N;
  std::int32_t transpose_c = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t aux_type = -1;
  std::int32_t bias_type = -1;
  std::int8_t fast_accumulation = 0;
  /// Something was set that the stand-in does not know the meaning of.
  std::int8_t beyond = 0;
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t stride_aux = 0;
  const float* scale_a = nullptr;
  const float* scale_b = nullptr;
  const float* scale_c = nullptr;
  const float* scale_d = nullptr;
};

/// cublasLtMatrixLayoutOpaque_t: column-major, perhaps of a batch of matrices one stride apart.
struct Layout {
  std::uint64_t mark = 0;
  std::int32_t type = 0;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t stride = 0;
  std::int32_t matrices = 1;
  /// Something was set that the stand-in does not know the meaning of.
  std::int8_t beyond = 0;
  /// Elements from one matrix to the next.
  std::int64_t batch_stride = 0;

  bool operator==(const Layout&) const = default;
};

/// cublasLtMatmulPreferenceOpaque_t.
struct Preference {
  std::uint64_t mark = 0;
  std::uint64_t most_workspace_bytes = 0;
  std::uint32_t alignment_a = 256;
  std::uint32_t alignment_b = 256;
  std::uint32_t alignment_c = 256;
  std::uint32_t alignment_d = 256;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::int8_t beyond = 0;
};

/// Reads what lies there; false where nothing was initialised.
bool read(const cublasLtMatmulDescOpaque_t* from, Operation& to);
bool read(const cublasLtMatrixLayoutOpaque_t* from, Layout& to);
bool read(const cublasLtMatmulPreferenceOpaque_t* from, Preference& to);

/// Size of a CUDA type that the stand-in knows; 0: it does not.
std::size_t size_of(std::int32_t type);

}  // namespace trireme::testing::cublaslt
