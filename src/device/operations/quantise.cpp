// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/quantise.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void LargestMagnitude::check() const {
  TRIREME_EXPECT(are_runs(1, magnitude), text_of(*this));
}

void Quantise::check() const {
  TRIREME_EXPECT(same_shape(x, result.codes) && result.codes.contiguous() &&
                     are_runs(1, magnitude, result.unscale),
                 text_of(*this));
}

}  // namespace trireme::device
