// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cublaslt/problem.hpp"

#include <span>

namespace trireme::testing::cublaslt {

/// Where the parts of a product lie; what it does not have is null.
struct Addresses {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  void* d = nullptr;
  void* bias = nullptr;
  void* aux = nullptr;
  const float* scale_a = nullptr;
  const float* scale_b = nullptr;
};

struct Factors {
  float alpha = 1;
  float beta = 0;
};

/// Where halves of sums meet, and to which type they are rounded there.
struct PartialSums {
  std::span<float> place;
  std::int32_t type = CUDA_R_32F;
};

/// Root mean squares of A and B, infinite where a number is not finite.
struct OperandSizes {
  double a = 0;
  double b = 0;
};

/// As documented, on column-major matrices. Sums are in double; where there is room for two of D
/// they are in float, in two halves of the inner dimension.
OperandSizes compute(const Problem& problem, const Addresses& addresses, const Factors& factors,
                     const PartialSums& partial_sums);

}  // namespace trireme::testing::cublaslt
