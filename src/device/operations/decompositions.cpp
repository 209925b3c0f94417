// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/decompositions.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {
namespace {

bool is_square(const Tensor& x, std::int64_t n) {
  return is_matrix(x) && has_shape(x, {n, n}) && x.dtype() == DType::f32;
}

}  // namespace

void SymmetricEigenvectors::check() const {
  const auto& [high, low] = symmetric;
  const auto n = values.element_count();
  TRIREME_EXPECT(is_square(high, n) && (!low || is_square(low, n)) && is_square(vectors, n) &&
                     values.contiguous(),
                 text_of(*this));
}

void OrthonormaliseRows::check() const {
  TRIREME_EXPECT(is_square(x, reflections.element_count()) && reflections.contiguous(),
                 text_of(*this));
}

}  // namespace trireme::device
