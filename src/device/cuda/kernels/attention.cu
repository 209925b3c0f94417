// SPDX-License-Identifier: Apache-2.0
// The own attention kernels, for the GPU.
#include "device/cuda/kernels/attention_backward.cuh"
#include "device/cuda/kernels/attention_forward.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template void attention_forward(Launcher&, const Attention&);
template void attention_backward(Launcher&, const AttentionBackward&);

}  // namespace trireme::device::cuda
