// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/kernels.hpp"

namespace trireme::device {

void Kernels::linear_gelu_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  const Tensor& wide, const Tensor& y) {
  linear_forward(x, w, bias, wide);
  gelu_forward(wide, y);
}

void Kernels::linear_backward_gelu(const Tensor& dy, const Tensor& w, const Tensor& wide,
                                   const Tensor& d_wide) {
  linear_backward_input(dy, w, d_wide);
  gelu_backward(d_wide, wide, d_wide);
}

}  // namespace trireme::device
