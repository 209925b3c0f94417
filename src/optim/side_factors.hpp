// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"
#include "trireme/optim/rule.hpp"

#include <cstdint>

/// Parts that rules share which keep a factor for each side of a matrix. Matrices are f32 [rows,
/// columns], contiguous; a factor of a side of `m` is [m, b]: its blocks [b, b] on the diagonal,
/// one under another, b a divisor of m.
namespace trireme::optim {

/// Updates that a matrix's state has had, and the turn of its renewals.
struct Age {
  std::int64_t updates = 0;
  std::int64_t turn = 0;

  bool is_turn(const FactorRule& rule) const { return updates % rule.root_every == turn; }
};

/// y = transpose(x).
void transpose(device::Kernels& kernels, const device::Tensor& x, const device::Tensor& y);

/// y = scale * x, of the same number of elements.
void scale(device::Kernels& kernels, const device::Tensor& x, float factor,
           const device::Tensor& y);

/// z = F x, where F [m, m] has the blocks of `factor` [m, b]: x, z [m, n].
void multiply(device::Kernels& kernels, const device::Tensor& factor, const device::Tensor& x,
              const device::Tensor& z);

/// factor = beta * factor + (1 - beta) * x transpose(x), its blocks alone. `scratch`: at least as
/// many elements as the factor.
void add_products(device::Kernels& kernels, const device::Tensor& x, float beta,
                  const device::Tensor& factor, const device::Tensor& scratch);

/// Adam's direction of a gradient, bias-corrected at update `update`, counted from 1: what AdamW
/// takes away at a learning rate of 1. Updates the moments.
struct AdamDirection {
  float beta1 = 0;
  float beta2 = 0;
  float eps = 0;
  std::int64_t update = 1;

  void compute(device::Kernels& kernels, const device::Tensor& gradient,
               const device::Tensor& first_moment, const device::Tensor& second_moment,
               const device::Tensor& direction) const;
};

/// The first elements of memory, as a matrix.
device::Tensor matrix_in(const device::Tensor& memory, std::int64_t rows, std::int64_t columns);

}  // namespace trireme::optim
