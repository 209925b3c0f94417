// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trireme::bench {

/// One kernel at the shapes of a model, with enough sets of tensors that each call finds its
/// inputs in memory, as in training, and not in a cache.
struct KernelWork {
  std::string name;
  device::DType dtype = device::DType::f32;
  /// Bytes that must come from and go to memory at least: each tensor once. 0: `operations` bound
  /// it.
  std::int64_t bytes = 0;
  std::function<void(std::int64_t call)> run;
  /// Multiplications and additions.
  double operations = 0;
  /// Whom to wait for, where it is not the kernels that are measured anyway.
  device::Kernels* kernels = nullptr;
};

/// By default a micro-batch of GPT-2 124M of 1024 tokens.
struct Shapes {
  std::int64_t rows = 1024;
  std::int64_t hidden = 768;
  std::int64_t intermediate = 3072;
  std::int64_t heads = 12;
  std::int64_t vocabulary = 50257;
  /// Logits and parameters are timed in pieces of this size, short enough to run undisturbed on a
  /// shared machine.
  std::int64_t logit_rows = 32;
  std::int64_t parameters = 1 << 20;
};
struct AttentionShape {
  const char* name = "";
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// Random numbers of [-1, 1), each element its own: constants would be kind to a processor's clock.
void set_random(device::Kernels& kernels, const device::Tensor& tensor, std::uint64_t seed);

/// Memory that a set of kernels runs over; it must outlive them.
struct Memory {
  device::Arena arena;
  /// Bytes of all sets of one kernel's tensors.
  std::int64_t footprint_bytes;
};

/// Kernels over activations of one type.
std::vector<KernelWork> activation_work(device::Kernels& kernels, Memory& memory,
                                        device::DType dtype, const Shapes& shapes);
/// Kernels over logits, in place.
std::vector<KernelWork> logit_work(device::Kernels& kernels, Memory& memory, device::DType dtype,
                                   const Shapes& shapes);
/// Kernels over runs of parameters; dtype is that of the parameters.
std::vector<KernelWork> parameter_work(device::Kernels& kernels, Memory& memory,
                                       device::DType dtype, const Shapes& shapes);
/// Kernels that make copies in FP8.
std::vector<KernelWork> quantise_work(device::Kernels& kernels, Memory& memory, device::DType dtype,
                                      const Shapes& shapes);
/// GEMM of such copies, made before: its share is of the rate of the bf16 GEMM.
KernelWork fp8_gemm_work(device::Kernels& kernels, Memory& memory, std::int64_t side);
/// Attention, causal. Operations are those that the mask leaves: 2 GEMMs of [seq, seq] / 2 by
/// head_dim forward, 5 backward. Names begin with `by`. Tensors lie where `memory` is, on the GPU
/// of `kernels`.
std::vector<KernelWork> attention_work(device::Kernels& kernels, Memory& memory,
                                       device::DType dtype,
                                       const std::vector<AttentionShape>& shapes,
                                       const std::string& by);

}  // namespace trireme::bench
