// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/optimizer.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {

void AdamWUpdate::check() const {
  const auto count = gradient.element_count();
  TRIREME_EXPECT(are_runs(count, gradient, master, first_moment, second_moment) &&
                     are_runs_if_any(count, parameter),
                 text_of(*this));
}

void SgdUpdate::check() const {
  const auto count = gradient.element_count();
  TRIREME_EXPECT(are_runs(count, gradient, master, momentum) && are_runs_if_any(count, parameter),
                 text_of(*this));
}

void MeanMomentum::check() const {
  TRIREME_EXPECT(are_runs(gradient.element_count(), gradient, momentum, update), text_of(*this));
}

void RoundStochastically::check() const {
  TRIREME_EXPECT(rounding.active() && are_runs(master.element_count(), master, parameter),
                 text_of(*this));
}

}  // namespace trireme::device
