// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/options.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <array>
#include <cstdint>

namespace trireme::optim {

using NewtonSchulzCoefficients = config::NewtonSchulzCoefficients;

/// Newton-Schulz iteration towards the nearest matrix with orthonormal rows or columns, U Vᵀ of
/// X = U S Vᵀ (Jordan et al. 2024, Muon). X begins as X / (‖X‖_F + eps), with rows <= columns after
/// a transposition; a step is A = X Xᵀ, B = b A + c A A, X <- a X + B X.
struct NewtonSchulz {
  NewtonSchulzCoefficients coefficients = NewtonSchulzCoefficients::simple;
  int steps = 5;
  float eps = 1e-7F;
  device::Triangles triangles = device::Triangles::lower;
};

/// a, b, c of step `step`, counted from 0. Beyond a list its last step repeats. `simple` (Jordan et
/// al. 2024) has one step; `quintic` is tuned for five (Jordan's and You's list, as Megatron-LM has
/// it); `polar_express` has eight (Amsel et al. 2025, arXiv 2505.16932).
std::array<float, 3> newton_schulz_step(NewtonSchulzCoefficients coefficients, int step);

/// Form in which a matrix of this shape is iterated: the one with fewer FLOPs. It depends on the
/// shape alone, so that no bit depends on the machine.
ownership::NewtonSchulzForm form_of(const NewtonSchulz& rule, const ownership::MatrixShape& shape);

/// Replaces each matrix of a batch, f32 [count, rows, columns], contiguous, by its iteration. What
/// is multiplied is of type `products`; `workspace` lends 2 x rows x columns + 3 x n x n elements
/// of it a matrix, n the shorter side.
void orthogonalise(device::Kernels& kernels, device::Arena& workspace, const NewtonSchulz& rule,
                   device::DType products, const device::Tensor& matrices);

}  // namespace trireme::optim
