// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/runtime/isa.hpp"
#include "device/cpu/simd/activations.hpp"
#include "device/cpu/simd/arithmetic.hpp"
#include "device/cpu/simd/attention.hpp"
#include "device/cpu/simd/cross_entropy.hpp"
#include "device/cpu/simd/dropout.hpp"
#include "device/cpu/simd/norm.hpp"
#include "device/cpu/simd/optimizer.hpp"
#include "device/cpu/simd/rotary.hpp"
#include "device/cpu/simd/rounding.hpp"
#include "device/cpu/simd/wide_panels.hpp"

namespace trireme::device::cpu {

/// The functions compiled for one instruction set, by theme (docs/decisions/0007).
struct Tables {
  ArithmeticTable arithmetic;
  ActivationTable activations;
  DropoutTable dropout;
  NormTable norm;
  RotaryTable rotary;
  CrossEntropyTable cross_entropy;
  OptimizerTable optimizer;
  RoundingTable rounding;
  AttentionTable attention;
  WidePanelTable wide_panels;
};

template <typename Instructions>
constexpr Tables make_tables() {
  return {arithmetic_table<Instructions>(), activation_table<Instructions>(),
          dropout_table<Instructions>(),    norm_table<Instructions>(),
          rotary_table<Instructions>(),     cross_entropy_table<Instructions>(),
          optimizer_table<Instructions>(),  rounding_table<Instructions>(),
          attention_table<Instructions>(),  wide_panel_table<Instructions>()};
}

extern const Tables avx2_tables;
extern const Tables avx512_tables;
extern const Tables avx512_bf16_tables;

/// The functions for an instruction set, which the CPU must have.
const Tables& tables_of(Isa isa);

}  // namespace trireme::device::cpu
