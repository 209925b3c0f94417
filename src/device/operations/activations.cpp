// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/activations.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void Rotary::check() const {
  TRIREME_EXPECT(x.rank() == 4 && x.dim(3) % 2 == 0 && cos_table.rank() == 2 &&
                     cos_table.dim(1) == x.dim(3) / 2 && same_shape(cos_table, sin_table),
                 text_of(*this));
  TRIREME_EXPECT(first_position >= 0 && first_position + x.dim(1) <= cos_table.dim(0),
                 text_of(*this));
}

void SwigluForward::check() const {
  TRIREME_EXPECT(same_shape(gate, up, y), text_of(*this));
}

void SwigluBackward::check() const {
  TRIREME_EXPECT(same_shape(dy, gate, up, d_gate, d_up), text_of(*this));
}

void GeluForward::check() const {
  TRIREME_EXPECT(same_shape(x, y), text_of(*this));
}

void GeluBackward::check() const {
  TRIREME_EXPECT(same_shape(dy, x, dx), text_of(*this));
}

void ApplyDropout::check() const {
  TRIREME_EXPECT(same_shape(x, y) && mask.has_valid_rate(), text_of(*this));
  TRIREME_EXPECT(mask.rate == 0.0F || mask.first_column + Rows(x).width() <= mask.width,
                 text_of(*this));
}

}  // namespace trireme::device
