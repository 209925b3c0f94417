// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ordered_sum.hpp"

namespace trireme::comm {

Instructions best_instructions() {
  static const Instructions best = [] {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
      return Instructions::avx512;
    }
    return __builtin_cpu_supports("avx2") ? Instructions::avx2 : Instructions::portable;
  }();
  return best;
}

}  // namespace trireme::comm
