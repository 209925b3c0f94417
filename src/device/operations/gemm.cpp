// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/operations/gemm.hpp"

#include "device/operations/preconditions.hpp"

namespace trireme::device {
namespace {

/// True if they have as many rows, of these widths, each row as far behind the one before.
bool are_rows(const Tensor& a, std::int64_t a_width, const Tensor& b, std::int64_t b_width) {
  const Rows of_a(a);
  const Rows of_b(b);
  return of_a.width() == a_width && of_b.width() == b_width && of_a.count() == of_b.count() &&
         of_a.evenly_spaced() && of_b.evenly_spaced();
}

/// y = x * transpose(w).
bool is_forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  return w.rank() == 2 && are_rows(x, w.dim(1), y, w.dim(0)) && x.dtype() == w.dtype();
}

bool is_bias(const Tensor& bias, const Tensor& w) {
  return !bias || (are_runs(w.dim(0), bias) && bias.dtype() == w.dtype());
}

/// dx = dy * w.
bool is_backward(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  return w.rank() == 2 && are_rows(dy, w.dim(0), dx, w.dim(1)) && dy.dtype() == w.dtype();
}

}  // namespace

void LinearForward::check() const {
  TRIREME_EXPECT(is_forward(x, w, y) && is_bias(bias, w), text_of(*this));
}

void LinearBackwardInput::check() const {
  TRIREME_EXPECT(is_backward(dy, w, dx), text_of(*this));
}

void LinearBackwardWeight::check() const {
  TRIREME_EXPECT(
      dw.rank() == 2 && are_rows(dy, dw.dim(0), x, dw.dim(1)) && are_runs_if_any(dw.dim(0), d_bias),
      text_of(*this));
  TRIREME_EXPECT(dy.dtype() == x.dtype() && dw.dtype() == DType::f32, text_of(*this));
}

void LinearGeluForward::check() const {
  TRIREME_EXPECT(
      is_forward(x, w, wide) && is_bias(bias, w) && is_forward(x, w, y) && same_shape(wide, y),
      text_of(*this));
}

void LinearBackwardGelu::check() const {
  TRIREME_EXPECT(is_backward(dy, w, wide) && is_backward(dy, w, d_wide) && same_shape(wide, d_wide),
                 text_of(*this));
}

void LinearForwardQuantised::check() const {
  TRIREME_EXPECT(is_matrix(x.codes) && is_matrix(w.codes) && is_forward(x.codes, w.codes, y) &&
                     are_runs(1, x.unscale, w.unscale),
                 text_of(*this));
  TRIREME_EXPECT(y.dtype() == DType::bf16 && are_runs_if_any(w.codes.dim(0), bias) &&
                     (!bias || bias.dtype() == DType::bf16),
                 text_of(*this));
}

}  // namespace trireme::device
