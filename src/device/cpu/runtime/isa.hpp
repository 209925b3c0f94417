// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

namespace trireme::device::cpu {

/// The vector instructions that a set of compiled kernels needs. Code of a wider set lives in
/// files of its own, compiled with its own flags, and is reached through tables of functions
/// alone, so that no CPU meets an instruction it lacks.
enum class Isa {
  avx2,         ///< AVX2 and FMA: every x86 server since 2013
  avx512,       ///< AVX-512 F, BW, DQ and VL: since 2017
  avx512_bf16,  ///< AVX-512 with BF16, for rounding in one instruction: since 2020
};

/// "avx2", "avx512", "avx512_bf16".
const char* name(Isa isa);

/// All sets, narrowest first.
inline constexpr std::array all_isas{Isa::avx2, Isa::avx512, Isa::avx512_bf16};

/// True if this CPU and its operating system run it.
bool runs(Isa isa);

/// The widest that runs here. A CPU without AVX2 ends in ExitCode::topology.
Isa best_isa();

}  // namespace trireme::device::cpu
