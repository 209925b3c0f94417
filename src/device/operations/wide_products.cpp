// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/wide_products.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {
namespace {

bool is_matrix_of_floats(const Tensor& x) {
  return is_matrix(x) && x.dtype() == DType::f32;
}

bool is_wide(const WideMatrix& matrix, std::int64_t rows, std::int64_t columns) {
  return is_matrix_of_floats(matrix.high) && is_matrix_of_floats(matrix.low) &&
         has_shape(matrix.high, {rows, columns}) && same_shape(matrix.high, matrix.low);
}

}  // namespace

void SymmetricRankUpdate::check() const {
  TRIREME_EXPECT(is_matrix_of_floats(x) && is_wide(sum, x.dim(1), x.dim(1)), text_of(*this));
}

void WideProduct::check() const {
  TRIREME_EXPECT(is_matrix_of_floats(x) && is_matrix_of_floats(y) && y.dim(0) == x.dim(0) &&
                     is_wide(s, x.dim(1), y.dim(1)) && y.raw() != x.raw(),
                 text_of(*this));
}

}  // namespace trireme::device
