// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX2 and FMA, as CMakeLists.txt says.
#include "device/cpu/simd/avx2.hpp"
#include "device/cpu/simd/tables.hpp"

namespace trireme::device::cpu {

constinit const Tables avx2_tables = make_tables<avx2::Instructions>();

}  // namespace trireme::device::cpu
