// SPDX-License-Identifier: Apache-2.0
// Kernels that work element by element, and sums of whole tensors, for the GPU.
#include "device/cuda/kernels/arithmetic.cuh"
#include "device/cuda/kernels/embedding.cuh"
#include "device/cuda/kernels/optimizer.cuh"
#include "device/cuda/kernels/quantise.cuh"
#include "device/cuda/runtime/launcher.hpp"

namespace trireme::device::cuda {

template void embedding_forward(Launcher&, const Tensor&, const Tensor&, std::int64_t,
                                const Tensor&);
template void embedding_backward(Launcher&, const Tensor&, const Tensor&, std::int64_t,
                                 const Tensor&);
template void add_positions(Launcher&, const Tensor&, const Tensor&, std::int64_t, std::int64_t);
template void add_positions_backward(Launcher&, const Tensor&, std::int64_t, const Tensor&);
template void rotary(Launcher&, const Tensor&, const RotaryTables&);
template void swiglu_forward(Launcher&, const Tensor&, const Tensor&, const Tensor&);
template void swiglu_backward(Launcher&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                              const Tensor&);
template void gelu_forward(Launcher&, const Tensor&, const Tensor&);
template void gelu_backward(Launcher&, const Tensor&, const Tensor&, const Tensor&);
template void dropout(Launcher&, const Tensor&, const Dropout&, const Tensor&);
template void fill(Launcher&, const Tensor&, float);
template void copy(Launcher&, const Tensor&, const Tensor&);
template void add(Launcher&, const Tensor&, const Tensor&, const Tensor&);
template void accumulate(Launcher&, const Tensor&, const Tensor&);
template double sum_of_squares(Launcher&, const Tensor&);
template double sum(Launcher&, const Tensor&);
template void largest_magnitude(Launcher&, const Tensor&, const Tensor&);
template void quantise(Launcher&, const Tensor&, const Tensor&, const Quantised&);
template void start_sum_of_squares(Launcher&, const Tensor&);
template void start_sum(Launcher&, const Tensor&);
template void adamw(Launcher&, const AdamW&, const OptimizerRuns&);
template void sgd(Launcher&, const Sgd&, const OptimizerRuns&);
template void round_stochastically(Launcher&, const Tensor&, const StochasticRounding&,
                                   const Tensor&);

}  // namespace trireme::device::cuda
