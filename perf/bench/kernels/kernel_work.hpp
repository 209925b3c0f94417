#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trireme::bench {

/// One kernel at the shapes of GPT-2 124M, with enough sets of tensors that each call finds its
/// inputs in memory, as in training, and not in a cache.
struct KernelWork {
  std::string name;
  device::DType dtype = device::DType::f32;
  /// Bytes that must come from and go to memory at least: each tensor once.
  std::int64_t bytes = 0;
  std::function<void(std::int64_t call)> run;
};

/// Micro-batch of GPT-2 124M: 1024 tokens.
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

}  // namespace trireme::bench
