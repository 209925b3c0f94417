#pragma once

#include "trireme/device/dtype.hpp"

#include <compare>
#include <cstdint>
#include <string>

namespace trireme::device::cuda {

/// What a library does with a product before it writes it.
enum class Epilogue {
  none,
  bias,           ///< + bias, one number for each row of d
  gelu,           ///< aux = it, d = gelu(it)
  gelu_bias,      ///< both
  gelu_gradient,  ///< d = gelu'(aux) * it
  bias_gradient,  ///< bias = sums of b over the inner dimension
};

/// d = a' * b' (+ d), as the library sees it: column-major, so every matrix of ours is its
/// transpose; a prime is a transposition if asked. d is [m, n], the inner dimension is k. All that
/// a choice of how to compute it depends on.
struct MatrixProduct {
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
  /// Of aux, where there is one.
  std::int64_t stride_aux = 0;
  bool accumulate = false;
  /// Of addresses, in bytes, up to 256.
  std::uint32_t alignment_a = 0;
  std::uint32_t alignment_b = 0;
  std::uint32_t alignment_d = 0;
  std::uint32_t alignment_aux = 0;

  auto operator<=>(const MatrixProduct&) const = default;
  /// The same for equal products alone: "3072x1024x768 tn 768,768,3072 bf16>bf16 gelu_bias,3072 +0
  /// @256,256,256,256".
  std::string text() const;
};

const char* name(Epilogue epilogue);
/// Whether it reads or writes a bias.
bool has_bias(Epilogue epilogue);

/// Whether own kernels can do what it would.
bool can_go_without(Epilogue epilogue);

/// Whether a product with its epilogue, which took `seconds`, is worth it where the same product
/// without took `seconds_apart`: whether a pass of its own over memory would have cost more than
/// the difference. Libraries have some epilogues in slow kernels alone.
bool epilogue_pays(const MatrixProduct& product, double seconds, double seconds_apart);

}  // namespace trireme::device::cuda
