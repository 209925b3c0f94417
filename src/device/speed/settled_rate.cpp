// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/measure.hpp"

#include <algorithm>

namespace trireme::device {

void SettledRate::add(double rate, Clock::time_point now) {
  constexpr double growth = 1.01;
  ++measurements_;
  best_ = std::max(best_, rate);
  if (best_ <= growth * stands_) return;
  stands_ = best_;
  grew_ = now;
}

bool SettledRate::goes_on(Clock::time_point now) const {
  if (measurements_ < patience_.least) return true;
  return now - grew_ < patience_.stands && now - begin_ < patience_.most;
}

}  // namespace trireme::device
