// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/runtime/isa.hpp"

#include "trireme/base/error.hpp"

namespace trireme::device::cpu {

const char* name(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "?";
}

bool runs(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case Isa::avx512:
      return runs(Isa::avx2) && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
    case Isa::avx512_bf16:
      return runs(Isa::avx512) && __builtin_cpu_supports("avx512bf16") != 0;
  }
  return false;
}

Isa best_isa() {
  if (runs(Isa::avx512_bf16)) return Isa::avx512_bf16;
  if (runs(Isa::avx512)) return Isa::avx512;
  if (runs(Isa::avx2)) return Isa::avx2;
  throw base::Error(base::ExitCode::topology,
                    "this CPU has no AVX2 (the cpu backend is built on it); set "
                    "numerics.backend = reference");
}

}  // namespace trireme::device::cpu
