// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/simd/tables.hpp"

namespace trireme::device::cpu {

const Tables& tables_of(Isa isa) {
  switch (isa) {
    case Isa::avx2:
      return avx2_tables;
    case Isa::avx512:
      return avx512_tables;
    case Isa::avx512_bf16:
      return avx512_bf16_tables;
  }
  return avx2_tables;
}

}  // namespace trireme::device::cpu
