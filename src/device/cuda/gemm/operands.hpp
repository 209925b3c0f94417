// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/gemm_tuning.hpp"

#include "device/cuda/gemm/descriptor.hpp"

#include <vector>

namespace trireme::device::cuda {

/// Alignment of a bias that the library reads or writes.
inline constexpr std::uint32_t bias_alignment = 16;

/// Addresses of a GEMM; those of an epilogue may be null.
struct GemmOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  /// Operand that is accumulated onto; null: d.
  const void* c = nullptr;
  void* aux = nullptr;
  const void* bias = nullptr;
  /// Scales of FP8 operands, f32 [1] each.
  const void* scale_a = nullptr;
  const void* scale_b = nullptr;
};

/// d = alpha * a' * b', and + beta * c where its descriptor accumulates.
struct Gemm {
  GemmDescriptor descriptor;
  GemmOperands operands;
  float alpha = 1;
  float beta = 1;
};

/// GEMM of a linear layer as the library sees it, with its epilogue.
Gemm gemm_of(const GemmCall& call);
/// True if the library may be asked for the epilogue: its epilogues are for bf16, and its gelu for
/// rows of whole packs.
bool fuses(const GemmCall& call);
/// True if the library may add the bias: its kernels read 16 bytes of a bias at once, and its
/// heuristics have not always considered a bias's address.
bool fuses_bias(const Tensor& bias);
/// GEMM that is left when own kernels do the rest, but for a bias that is added to it.
GemmCall unfused(const GemmCall& call);
/// Variants of a call with less and less epilogue, to be asked of the library one after another
/// until it offers one: the first leaves the least to own kernels.
std::vector<GemmCall> epilogue_variants(const GemmCall& call);

/// Alignment of an address, up to the 256 bytes that the library assumes unless told.
std::uint32_t alignment_of(const void* address);

}  // namespace trireme::device::cuda
