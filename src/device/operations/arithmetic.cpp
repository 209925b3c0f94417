// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/arithmetic.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void Copy::check() const {
  const auto converts = [](const Tensor& x) {
    return x.dtype() == DType::f32 || x.dtype() == DType::bf16;
  };
  TRIREME_EXPECT(
      same_shape(from, to) && (from.dtype() == to.dtype() || (converts(from) && converts(to))),
      text_of(*this));
}

void Add::check() const {
  TRIREME_EXPECT(same_shape(x, y, z), text_of(*this));
}

void Accumulate::check() const {
  TRIREME_EXPECT(same_shape(x, sum), text_of(*this));
}

void HashBits::check() const {
  TRIREME_EXPECT(are_runs(2, hash), text_of(*this));
}

}  // namespace trireme::device
