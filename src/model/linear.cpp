#include "linear.hpp"

namespace trireme::model {
namespace {

using device::Quantised;
using device::Tensor;

/// magnitudes: f32 [2], of x and of the weight, each over all ranks that hold parts of it. Where
/// every rank has the whole x, all say the same.
void find_magnitudes(const StageContext& context, const Tensor& x, const Tensor& weight,
                     const Tensor& magnitudes) {
  context.kernels.largest_magnitude(x, magnitudes.slice(0, 0, 1));
  context.kernels.largest_magnitude(weight, magnitudes.slice(0, 1, 1));
  if (context.tensor.size() > 1) context.tensor.all_reduce(magnitudes, comm::ReduceOp::max);
}

Quantised quantised(const StageContext& context, const Tensor& x, const Tensor& magnitude) {
  auto& arena = context.workspace;
  const Quantised copy{arena.allocate(device::DType::e4m3, {x.dim(0), x.dim(1)}),
                       arena.allocate(device::DType::f32, {1})};
  context.kernels.quantise(x, magnitude, copy);
  return copy;
}

}  // namespace

void linear_forward(const StageContext& context, const Tensor& x, const Matrix& matrix,
                    const Tensor& bias, const Tensor& y) {
  switch (context.linear_forward) {
    case LinearForward::plain:
      context.kernels.linear_forward(x, matrix.weight, bias, y);
      return;
    case LinearForward::e4m3:
      break;
  }
  const device::ArenaScope scope(context.workspace);
  const auto magnitudes = context.workspace.allocate(device::DType::f32, {2});
  find_magnitudes(context, x, matrix.weight, magnitudes);
  const auto of_x = quantised(context, x, magnitudes.slice(0, 0, 1));
  const auto of_weight = quantised(context, matrix.weight, magnitudes.slice(0, 1, 1));
  context.kernels.linear_forward_quantised(of_x, of_weight, bias, y);
}

}  // namespace trireme::model
