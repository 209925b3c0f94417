// SPDX-License-Identifier: Apache-2.0
// Kernels that reduce over rows or columns, for the GPU.
#include "device/cuda/kernels/cross_entropy.cuh"
#include "device/cuda/kernels/norm.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template void norm_forward(Launcher&, const NormForward&);
template void norm_backward(Launcher&, const NormBackward&);
template void add_column_sums(Launcher&, const Tensor&, const Tensor&);
template void add_bias(Launcher&, const Tensor&, const Tensor&);
template void cross_entropy_stats(Launcher&, const Tensor&, const Tensor&, std::int64_t,
                                  const Tensor&);
template void cross_entropy_combine(Launcher&, const Tensor&, const Tensor&, const Tensor&,
                                    const Tensor&);
template void cross_entropy_gradient(Launcher&, const Tensor&, const Tensor&, std::int64_t,
                                     const Tensor&, float);

}  // namespace trireme::device::cuda
