// SPDX-License-Identifier: Apache-2.0
// Kernels that work element by element, and sums of whole tensors, for the GPU.
#include "device/cuda/kernels/activations.cuh"
#include "device/cuda/kernels/arithmetic.cuh"
#include "device/cuda/kernels/embedding.cuh"
#include "device/cuda/kernels/matrices.cuh"
#include "device/cuda/kernels/optimizer.cuh"
#include "device/cuda/kernels/own_operations.cuh"
#include "device/cuda/kernels/quantise.cuh"
#include "device/cuda/kernels/wide_products.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template struct OwnOperations<Launcher, ElementOperations>;
template double sum_of_squares(Launcher&, const Tensor&);
template double sum(Launcher&, const Tensor&);
template void start_sum_of_squares(Launcher&, const Tensor&);
template void start_sum(Launcher&, const Tensor&);

}  // namespace trireme::device::cuda
