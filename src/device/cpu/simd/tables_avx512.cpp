// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 F, BW, DQ and VL, as CMakeLists.txt says.
#include "device/cpu/simd/avx512.hpp"
#include "device/cpu/simd/tables.hpp"

namespace trireme::device::cpu {

constinit const Tables avx512_tables = make_tables<avx512::Instructions<avx512::RoundInSteps>>();

}  // namespace trireme::device::cpu
