// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cublaslt/descriptors.hpp"

#include <string>

namespace trireme::testing::cublaslt {

/// The parts of cublasLtEpilogue_t.
struct EpilogueParts {
  bool bias = false;
  bool gelu = false;           ///< aux is written
  bool gelu_gradient = false;  ///< aux is read
  bool sums_of_b = false;

  bool aux() const { return gelu || gelu_gradient; }
  bool vector() const { return bias || sums_of_b; }
};

/// D = alpha * op(A) * op(B) + beta * C and an epilogue, described.
struct Problem {
  Operation operation;
  Layout a;
  Layout b;
  Layout c;
  Layout d;

  std::uint64_t m() const { return d.rows; }
  std::uint64_t n() const { return d.columns; }
  std::uint64_t k() const { return operation.transpose_a == CUBLAS_OP_N ? a.columns : a.rows; }
  std::size_t matrices() const { return static_cast<std::size_t>(d.matrices); }
  bool float8() const { return a.type == CUDA_R_8F_E4M3; }
  /// Types of bias and aux, told or by default.
  std::int32_t bias_type() const;
  std::int32_t aux_type() const;
  /// Digest of all that decides how one matrix is computed, without addresses.
  std::uint64_t digest() const;
};

/// Parts of epilogues that the stand-in computes; others are refused by judge().
EpilogueParts parts_of(std::uint32_t epilogue);

/// Whether the library's documents allow it: SUCCESS, INVALID_VALUE for what contradicts itself,
/// NOT_SUPPORTED for what they do not list. `capability` is 90 for 9.0.
cublasStatus_t judge(const Problem& problem, int capability);

/// Reads all descriptors, then judges.
cublasStatus_t read_problem(const cublasLtMatmulDescOpaque_t* operation,
                            const cublasLtMatrixLayoutOpaque_t* const (&layouts)[4], int capability,
                            Problem& problem);

}  // namespace trireme::testing::cublaslt
