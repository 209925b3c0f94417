// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/norm_backward.cuh"
#include "device/cuda/kernels/norm_forward.cuh"

namespace trireme::device::cuda {

template <typename L>
void run(L& launcher, const NormForward& norm) {
  const Rows rows(norm.x);
  if (rows.count() == 0) return;
  with_type(norm.x.dtype(), [&](auto element) {
    using T = decltype(element);
    const Tensor no_sum;
    const Tensor& sum = norm.residual ? norm.sum : no_sum;
    const bool packed =
        all_packable(pack_size<T>, norm.x, norm.residual, sum, norm.y, norm.weight, norm.bias);
    launch_forward<T>(launcher, {rows.count(), rows.width(), packed},
                      {matrix_of<const T>(launcher, norm.x),
                       matrix_of<const T>(launcher, norm.residual), matrix_of<T>(launcher, sum),
                       matrix_of<const T>(launcher, norm.residual ? norm.sum : norm.x),
                       memory_of<const T>(launcher, norm.weight),
                       memory_of<const T>(launcher, norm.bias), matrix_of<T>(launcher, norm.y),
                       memory_of<float>(launcher, norm.mean), memory_of<float>(launcher, norm.rstd),
                       rows.count(), rows.width(), norm.eps, norm.kind == NormKind::layer});
  });
}

template <typename L>
void run(L& launcher, const NormBackward& norm) {
  const Rows rows(norm.dy);
  const bool layer = norm.kind == NormKind::layer;
  if (rows.count() == 0) return;
  with_type(norm.dy.dtype(), [&](auto element) {
    using T = decltype(element);
    const NormBackwardOperands<T> operands{
        matrix_of<const T>(launcher, norm.dy),
        matrix_of<const T>(launcher, norm.x),
        memory_of<const T>(launcher, norm.weight),
        memory_of<const float>(launcher, layer ? norm.mean : Tensor()),
        memory_of<const float>(launcher, norm.rstd),
        matrix_of<const T>(launcher, norm.d_residual),
        matrix_of<T>(launcher, norm.dx),
        rows.count(),
        rows.width(),
        norm.eps,
        layer};
    constexpr int pack = pack_size<T>;
    const bool readable = all_packable(pack, norm.dy, norm.x);
    const bool packed = rows.width() % pack == 0 && readable &&
                        all_packable(pack, norm.weight, norm.d_residual, norm.dx);
    // The gradient of a bias that RMS norms do not have is a separate sum.
    if (rows.width() >= narrow_width && (layer || !norm.d_bias)) {
      const bool done =
          packed ? backward_in_one_pass<T, pack>(launcher, operands, norm.d_weight, norm.d_bias)
                 : backward_in_one_pass<T, 1>(launcher, operands, norm.d_weight, norm.d_bias);
      if (done) return;
    }
    // Column sums come before dx is written: it may lie where dy does.
    add_columns<pack>(launcher, "norm_columns",
                      NormColumns<T>{operands.dy, operands.x, operands.mean, operands.rstd},
                      {rows.count(), rows.width(), readable}, {norm.d_weight, norm.d_bias});
    backward_streamed<T>(launcher, {rows.count(), rows.width(), packed}, operands);
  });
}

}  // namespace trireme::device::cuda
