// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xmmintrin.h>

namespace trireme::device {

/// Makes this thread read and write denormal numbers as zero: arithmetic on them is many times
/// slower, and gradients that small change nothing.
inline void flush_denormals() {
  constexpr unsigned flush_results = 0x8000;
  constexpr unsigned flush_operands = 0x0040;
  const unsigned control = _mm_getcsr();
  const unsigned wanted = control | flush_results | flush_operands;
  if (control != wanted) _mm_setcsr(wanted);
}

}  // namespace trireme::device
