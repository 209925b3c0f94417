// SPDX-License-Identifier: Apache-2.0
#include "nonfinite_steps.hpp"

#include <cmath>

namespace trireme::train {

NonfiniteSteps::Verdict NonfiniteSteps::judge(double loss, double gradient_norm) {
  if (std::isfinite(loss) && std::isfinite(gradient_norm)) {
    in_a_row_ = 0;
    return Verdict::update;
  }
  return ++in_a_row_ <= most_ ? Verdict::skip : Verdict::stop;
}

}  // namespace trireme::train
