// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/matrices.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void NormaliseMatrices::check() const {
  TRIREME_EXPECT(is_batch(x) && is_batch(y) && same_shape(x, y), text_of(*this));
}

void MatrixNorms::check() const {
  TRIREME_EXPECT(is_batch(x) && are_runs(x.dim(0), norms), text_of(*this));
}

void TransposeMatrices::check() const {
  TRIREME_EXPECT(is_batch(x) && is_batch(y) && has_shape(y, {x.dim(0), x.dim(2), x.dim(1)}) &&
                     x.dtype() == y.dtype(),
                 text_of(*this));
}

void ScaleRows::check() const {
  TRIREME_EXPECT(is_matrix(x) && is_matrix(y) && same_shape(x, y) && are_runs(x.dim(0), factors),
                 text_of(*this));
}

void RowProducts::check() const {
  TRIREME_EXPECT(is_matrix(x) && is_matrix(y) && same_shape(x, y) && is_matrix(sums) &&
                     has_shape(sums, {x.dim(0), 2}),
                 text_of(*this));
}

void SymmetricProduct::check() const {
  TRIREME_EXPECT(is_batch(x) && is_batch(y) && has_shape(y, {x.dim(0), x.dim(1), x.dim(1)}) &&
                     x.dtype() == y.dtype(),
                 text_of(*this));
  TRIREME_EXPECT(!added || (is_batch(added) && same_shape(added, y) && added.dtype() == y.dtype() &&
                            added.raw() != y.raw()),
                 text_of(*this));
  TRIREME_EXPECT(!by || (is_batch(by) && same_shape(by, x) && by.dtype() == x.dtype()),
                 text_of(*this));
}

void AddProduct::check() const {
  TRIREME_EXPECT(is_batch(s) && is_batch(x) && is_batch(z) && same_shape(x, z) &&
                     has_shape(s, {x.dim(0), x.dim(1), x.dim(1)}),
                 text_of(*this));
  TRIREME_EXPECT(s.dtype() == x.dtype() && z.dtype() == x.dtype() && z.raw() != x.raw(),
                 text_of(*this));
}

}  // namespace trireme::device
