// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/operations/wide_products.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

class Arena;

// Decompositions of square matrices, f32 [n, n] and contiguous: by LAPACK on hosts, on the calling
// thread alone, so that the bits of a result depend on the operands only; by cuSOLVER on GPUs,
// where the host waits for them, and so no CUDA graph holds one.

/// Memory for the operations below, of matrices up to [n, n]. A library that asks for more has its
/// own.
struct DecompositionWorkspace {
  /// Numbers in which eigenvectors are computed.
  enum class Numbers { fp32, fp64 };
  /// f32 [1 + 6 n + 2 n^2], what LAPACK's ssyevd asks for; of fp64 f32 [2 (1 + 7 n + 3 n^2)], which
  /// is room for dsyevd's as many doubles and for those of matrix and eigenvalues.
  Tensor reals;
  Tensor integers;  // i32 [3 + 5 n]

  DecompositionWorkspace(Arena& arena, std::int64_t n, Numbers numbers = Numbers::fp32);
};

/// Eigenvectors of a symmetric matrix, as rows of unit length, in the ascending order of their
/// eigenvalues. The library chooses their signs, and which they are where eigenvalues are equal.
/// Computed in fp64 of a matrix that has a low part, and where fp32 does not converge; base::Error
/// (internal) where neither does.
struct SymmetricEigenvectors {
  static constexpr const char* name = "symmetric_eigenvectors";
  WideMatrix symmetric;  // [n, n]
  Tensor vectors;        // [n, n]
  Tensor values;         // f32 [n]
  DecompositionWorkspace workspace;

  void check() const;
  void operands(auto visit) {
    visit("symmetric", symmetric.high, Role::input);
    visit("symmetric_low", symmetric.low, Role::input);
    visit("vectors", vectors, Role::output);
    visit("values", values, Role::output);
    visit("reals", workspace.reals, Role::in_out);
    visit("integers", workspace.integers, Role::in_out);
  }
};

/// Rows of x become orthonormal, the first k of them spanning what the first k did: Q of the QR
/// decomposition of transpose(x), transposed.
struct OrthonormaliseRows {
  static constexpr const char* name = "orthonormalise_rows";
  Tensor x;            // [n, n]
  Tensor reflections;  // f32 [n]: scalar factors of the Householder reflections
  DecompositionWorkspace workspace;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::in_out);
    visit("reflections", reflections, Role::output);
    visit("reals", workspace.reals, Role::in_out);
    visit("integers", workspace.integers, Role::in_out);
  }
};

using DecompositionOperations = OperationList<SymmetricEigenvectors, OrthonormaliseRows>;

}  // namespace trireme::device
