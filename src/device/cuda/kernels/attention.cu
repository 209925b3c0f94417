// SPDX-License-Identifier: Apache-2.0
// The own attention kernels, for the GPU.
#include "device/cuda/kernels/attention_backward.cuh"
#include "device/cuda/kernels/attention_forward.cuh"
#include "device/cuda/kernels/own_operations.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template struct OwnOperations<Launcher, AttentionOperations>;

}  // namespace trireme::device::cuda
