// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cmath>
#include <ratio>

namespace trireme::predict {

/// Number of picoseconds: 64 bits hold 106 days alone.
__extension__ using Picoseconds = __int128;

/// Time of the simulated machine. Whole numbers: sums do not depend on their order, so that folded
/// ranks end exactly when unfolded ones do.
using Time = std::chrono::duration<Picoseconds, std::pico>;

/// Time of one operation; what is longer than 300,000 years is cut, so that sums of 10^12 of them
/// are numbers still.
inline Time time_of(double seconds) {
  constexpr double longest = 1e13;
  const double cut = seconds < longest ? seconds : longest;
  return Time(static_cast<Picoseconds>(std::nearbyint(cut * static_cast<double>(std::pico::den))));
}

inline double seconds_of(Time time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace trireme::predict
