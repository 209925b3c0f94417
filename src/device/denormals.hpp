// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::device {

/// Makes this thread read and write denormal numbers as zero: arithmetic on them is many times
/// slower, and gradients that small change nothing.
inline void flush_denormals() {
#if defined(__x86_64__)
  constexpr unsigned flush_results = 0x8000;
  constexpr unsigned flush_operands = 0x0040;
  const unsigned control = __builtin_ia32_stmxcsr();
  const unsigned wanted = control | flush_results | flush_operands;
  if (control != wanted) __builtin_ia32_ldmxcsr(wanted);
#elif defined(__aarch64__)
  // FZ of FPCR: both.
  constexpr std::uint64_t flush = std::uint64_t{1} << 24;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  if ((control & flush) == 0) asm volatile("msr fpcr, %0" : : "r"(control | flush));
#endif
}

}  // namespace trireme::device
