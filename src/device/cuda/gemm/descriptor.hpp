// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <compare>
#include <cstdint>
#include <string>

namespace trireme::device::cuda {

/// Operation that a library applies to the result of a GEMM before it writes it.
enum class Epilogue {
  none,
  bias,           ///< + bias, one number for each row of d
  gelu,           ///< aux = it, d = gelu(it)
  gelu_bias,      ///< bias and gelu
  gelu_gradient,  ///< d = gelu'(aux) * it
  bias_gradient,  ///< bias = sums of b over the inner dimension
};

/// GEMM as the library sees it, d = a' * b' (+ d): column-major, so every matrix of ours is its
/// transpose; a prime is a transposition if asked. d is [m, n], the inner dimension is k. Its
/// members are all that the choice of an algorithm depends on.
struct GemmDescriptor {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_d = 0;
  DType in = DType::f32;
  DType out = DType::f32;
  Epilogue epilogue = Epilogue::none;
  /// Row stride of aux; 0 without one.
  std::int64_t stride_aux = 0;
  bool accumulate = false;
  /// Alignments of addresses, in bytes, up to 256.
  std::uint32_t alignment_a = 0;
  std::uint32_t alignment_b = 0;
  std::uint32_t alignment_d = 0;
  std::uint32_t alignment_aux = 0;
  /// Matrices of a batch, all of them multiplied by the algorithm that is chosen for one: so the
  /// bits of a matrix do not depend on its batch. 0: the GEMM is none of a batch.
  std::int64_t matrices = 0;
  /// Elements from one matrix of a batch to the next, with more than one.
  std::int64_t batch_stride_a = 0;
  std::int64_t batch_stride_b = 0;
  std::int64_t batch_stride_c = 0;
  std::int64_t batch_stride_d = 0;
  /// Stride of c, which is accumulated onto where it is not d: d = a' * b' + c.
  std::int64_t stride_c = 0;
  std::uint32_t alignment_c = 0;

  /// That of one matrix of the batch, on which the choice of its algorithm depends.
  GemmDescriptor alone() const;
  auto operator<=>(const GemmDescriptor&) const = default;
  /// Key in the tuning cache, the same for equal GEMMs alone:
  /// "3072x1024x768 tn 768,768,3072 bf16>bf16 gelu_bias,3072 +0 @256,256,256,256"; of a batch with
  /// " batch,1024@256" behind it, for the stride and the alignment of c.
  std::string text() const;
};

const char* name(Epilogue epilogue);
/// True if the epilogue reads or writes a bias.
bool has_bias(Epilogue epilogue);

/// True if own kernels can do the epilogue's work.
bool can_go_without(Epilogue epilogue);

/// True if an epilogue pays: its GEMM took `seconds`, and the same GEMM without took
/// `seconds_apart`. It does if a pass of its own over memory would have cost more than the
/// difference. Libraries have some epilogues in slow kernels alone.
bool epilogue_pays(const GemmDescriptor& descriptor, double seconds, double seconds_apart);

}  // namespace trireme::device::cuda
