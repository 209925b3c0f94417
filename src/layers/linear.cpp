// SPDX-License-Identifier: Apache-2.0
#include "linear.hpp"

#include "layers/magnitudes.hpp"

#include <initializer_list>

namespace trireme::layers {
namespace {

using device::Quantised;
using device::Tensor;

/// Magnitudes, f32, one for each tensor, over all ranks that hold parts of it. Where every rank has
/// the whole tensor, all ranks find the same.
void find_magnitudes(const StageContext& context, std::initializer_list<Tensor> tensors,
                     const Tensor& magnitudes) {
  std::int64_t index = 0;
  for (const auto& tensor : tensors) {
    context.kernels.issue(device::LargestMagnitude{tensor, magnitudes.slice(0, index++, 1)});
  }
  join_magnitudes(context.tensor, magnitudes);
  if (context.context_parallel != nullptr) join_magnitudes(*context.context_parallel, magnitudes);
}

Quantised quantised(const StageContext& context, const Tensor& x, const Tensor& magnitude) {
  auto& arena = context.workspace;
  const Quantised copy{arena.allocate(device::DType::e4m3, {x.dim(0), x.dim(1)}),
                       arena.allocate(device::DType::f32, {1})};
  context.kernels.issue(device::Quantise{x, magnitude, copy});
  return copy;
}

}  // namespace

void linear_forward(const StageContext& context, const Tensor& x, const Matrix& matrix,
                    const Tensor& bias, const Tensor& y) {
  switch (context.linear_forward) {
    case LinearForward::plain:
      context.kernels.issue(device::LinearForward{x, matrix.weight, bias, y});
      return;
    case LinearForward::e4m3:
      break;
  }
  const device::ArenaScope scope(context.workspace);
  const bool kept = static_cast<bool>(matrix.copy.codes);
  const auto magnitudes = context.workspace.allocate(device::DType::f32, {kept ? 1 : 2});
  if (kept) {
    find_magnitudes(context, {x}, magnitudes);
  } else {
    find_magnitudes(context, {x, matrix.weight}, magnitudes);
  }
  const auto of_x = quantised(context, x, magnitudes.slice(0, 0, 1));
  const auto of_weight =
      kept ? matrix.copy : quantised(context, matrix.weight, magnitudes.slice(0, 1, 1));
  context.kernels.issue(device::LinearForwardQuantised{of_x, of_weight, bias, y});
}

void add_weight_gradient(const StageContext& context, const Tensor& d_y, const Tensor& x,
                         const Matrix& matrix, WideColumns columns) {
  const auto width = d_y.dim(1);
  const auto begin = columns == WideColumns::second_half ? width / 2 : 0;
  const auto count = (columns == WideColumns::first_half ? width / 2 : width) - begin;
  const auto d_bias = matrix.d_bias ? matrix.d_bias.slice(0, begin, count) : matrix.d_bias;
  context.kernels.issue(device::LinearBackwardWeight{
      d_y.slice(1, begin, count), x, matrix.d_weight.slice(0, begin, count), d_bias});
}

}  // namespace trireme::layers
