// SPDX-License-Identifier: Apache-2.0
#include "side_factors.hpp"

namespace trireme::optim {

using device::Tensor;

namespace {

Tensor batch_of_one(const Tensor& x) {
  return x.reshape({1, x.dim(0), x.dim(1)});
}

/// x [m, n] as its rows of each block.
Tensor rows_by_block(const Tensor& x, std::int64_t block) {
  return x.reshape({x.dim(0) / block, block, x.dim(1)});
}

}  // namespace

Tensor matrix_in(const Tensor& memory, std::int64_t rows, std::int64_t columns) {
  return memory.flat().slice(0, 0, rows * columns).reshape({rows, columns});
}

void transpose(device::Kernels& kernels, const Tensor& x, const Tensor& y) {
  kernels.issue(device::TransposeMatrices{batch_of_one(x), batch_of_one(y)});
}

void scale(device::Kernels& kernels, const Tensor& x, float factor, const Tensor& y) {
  // A mean with nothing before it.
  kernels.issue(device::Fill{y.flat(), 0.0F});
  kernels.issue(device::MeanMomentum{.beta = 0.0F,
                                     .step = device::MeanMomentum::Step::plain,
                                     .gradient_scale = factor,
                                     .gradient = x.flat(),
                                     .momentum = y.flat(),
                                     .update = y.flat()});
}

void multiply(device::Kernels& kernels, const Tensor& factor, const Tensor& x, const Tensor& z) {
  const auto block = factor.dim(1);
  kernels.issue(device::AddProduct{rows_by_block(factor, block), rows_by_block(x, block),
                                   rows_by_block(z, block), 0.0F});
}

void add_products(device::Kernels& kernels, const Tensor& x, float beta, const Tensor& factor,
                  const Tensor& scratch) {
  const auto block = factor.dim(1);
  const auto sum = matrix_in(scratch, factor.dim(0), block);
  kernels.issue(device::SymmetricProduct{.x = rows_by_block(x, block),
                                         .added = rows_by_block(factor, block),
                                         .y = rows_by_block(sum, block),
                                         .scale = 1.0F - beta,
                                         .added_scale = beta});
  kernels.issue(device::Copy{sum, factor});
}

void AdamDirection::compute(device::Kernels& kernels, const Tensor& gradient,
                            const Tensor& first_moment, const Tensor& second_moment,
                            const Tensor& direction) const {
  kernels.issue(device::Fill{direction.flat(), 0.0F});
  kernels.issue(device::AdamWUpdate{
      .rule = {.learning_rate = -1.0F, .beta1 = beta1, .beta2 = beta2, .eps = eps, .step = update},
      .gradient = gradient.flat(),
      .master = direction.flat(),
      .first_moment = first_moment.flat(),
      .second_moment = second_moment.flat(),
      .parameter = direction.flat()});
}

}  // namespace trireme::optim
