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

/// As documented, on column-major matrices. Sums are in double; where `partial_sums` has room for
/// two of D they are in float, in two halves of the inner dimension that meet there.
void compute(const Problem& problem, const Addresses& addresses, const Factors& factors,
             std::span<float> partial_sums);

}  // namespace trireme::testing::cublaslt
