// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce over rows or columns, for the GPU.
#include "device/cuda/kernels/columns.cuh"
#include "device/cuda/kernels/cross_entropy.cuh"
#include "device/cuda/kernels/norm.cuh"
#include "device/cuda/kernels/own_operations.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template struct OwnOperations<Launcher, RowOperations>;

}  // namespace trireme::device::cuda
