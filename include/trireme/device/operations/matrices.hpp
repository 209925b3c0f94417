// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/operation_list.hpp"
#include "trireme/device/tensor.hpp"

namespace trireme::device {

// Batches of whole matrices of one shape, contiguous: what rules that need whole matrices compute
// with. The result of a matrix does not depend on what else is in its batch, nor on the number of
// threads.

/// y = x / (norm + eps) for each matrix, by its Frobenius norm, which is summed in double.
struct NormaliseMatrices {
  static constexpr const char* name = "normalise_matrices";
  Tensor x;  // f32 [count, rows, columns]
  Tensor y;  // [count, rows, columns]
  float eps = 0;

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::output);
  }
};

/// Frobenius norm of each matrix, summed in double.
struct MatrixNorms {
  static constexpr const char* name = "matrix_norms";
  Tensor x;      // f32 [count, rows, columns]
  Tensor norms;  // f32 [count]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("norms", norms, Role::output);
  }
};

/// y = transpose(x) of each matrix.
struct TransposeMatrices {
  static constexpr const char* name = "transpose_matrices";
  Tensor x;  // [count, rows, columns]
  Tensor y;  // [count, columns, rows]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::output);
  }
};

/// y = x, each row times its factor; y may be x.
struct ScaleRows {
  static constexpr const char* name = "scale_rows";
  Tensor x;        // f32 [rows, columns]
  Tensor factors;  // f32 [rows]
  Tensor y;        // f32 [rows, columns]

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("factors", factors, Role::input);
    visit("y", y, x.raw() == y.raw() ? Role::in_out : Role::output);
  }
};

/// Inner products of the rows of x with those of y: products in fp32, sums in double.
struct RowProducts {
  static constexpr const char* name = "row_products";
  Tensor x;     // f32 [rows, columns]
  Tensor y;     // f32 [rows, columns]
  Tensor sums;  // i32 [rows, 2]: the words of each double, the low one first

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("y", y, Role::input);
    visit("sums", sums, Role::output);
  }
};

/// The triangles of a symmetric product that a backend computes.
enum class Triangles {
  both,
  /// The lower one, which is mirrored: half of the products. A backend that has no kernel for it
  /// computes both.
  lower
};

/// y = scale * x * transpose(by) + added_scale * added, of each matrix. `by` is x where it is
/// empty; else the product has to be symmetric, as that of two symmetric matrices is which commute.
struct SymmetricProduct {
  static constexpr const char* name = "symmetric_product";
  Tensor x;        // [count, n, m]
  Tensor added{};  // [count, n, n], symmetric; or empty
  Tensor y;        // [count, n, n]
  float scale = 1;
  float added_scale = 0;
  Triangles triangles = Triangles::lower;
  Tensor by{};  // [count, n, m], or empty

  void check() const;
  void operands(auto visit) {
    visit("x", x, Role::input);
    visit("added", added, Role::input);
    visit("y", y, Role::output);
    visit("by", by, Role::input);
  }
};

/// z = scale * x + s * x, of each matrix.
struct AddProduct {
  static constexpr const char* name = "add_product";
  Tensor s;  // [count, n, n]
  Tensor x;  // [count, n, m]
  Tensor z;  // [count, n, m]
  float scale = 1;

  void check() const;
  void operands(auto visit) {
    visit("s", s, Role::input);
    visit("x", x, Role::input);
    visit("z", z, Role::output);
  }
};

using MatrixOperations =
    OperationList<NormaliseMatrices, MatrixNorms, TransposeMatrices, ScaleRows, RowProducts>;
/// Those that backends compute as they do GEMMs.
using MatrixProductOperations = OperationList<SymmetricProduct, AddProduct>;

}  // namespace trireme::device
