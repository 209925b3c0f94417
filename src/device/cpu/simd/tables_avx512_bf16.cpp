// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512 F, BW, DQ, VL and BF16, as CMakeLists.txt says.
#include "device/cpu/simd/avx512.hpp"
#include "device/cpu/simd/tables.hpp"

namespace trireme::device::cpu {
namespace avx512 {
namespace {

/// The CPU's own rounding to bf16: the same, but denormal numbers become zero.
struct RoundAtOnce {
  static __m256i narrow(__m512 v) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)); }
};

}  // namespace
}  // namespace avx512

constinit const Tables avx512_bf16_tables =
    make_tables<avx512::Instructions<avx512::RoundAtOnce>>();

}  // namespace trireme::device::cpu
