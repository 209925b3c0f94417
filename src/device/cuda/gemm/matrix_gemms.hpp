// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/gemm/operands.hpp"

#include <vector>

namespace trireme::device::cuda {

/// True if the call is of a batch of matrices, which matrix_gemms() makes GEMMs of.
bool is_of_matrices(const GemmCall& call);

/// How often the side of a symmetric result [n, n] is halved, so that GEMMs compute no more than
/// its lower triangle and the squares on its diagonal: at each halving the square below the
/// diagonal is one GEMM, and what is left are two triangles of half the side. After h halvings (1 +
/// 2^-h) / 2 of the FLOPs are computed. A GEMM of fewer than 2^21 results leaves a GPU of 132
/// multiprocessors half empty (tiles of 128 x 256), and so costs the time of a larger one: 0 up to
/// n = 2895. Depends on n alone, as the bits of a matrix do.
int triangle_halvings(std::int64_t n);

/// GEMMs of a batch of products, in any order; each is of a batch itself. Of a symmetric product
/// with one triangle, and halvings, the lower triangle and the squares on the diagonal.
std::vector<Gemm> matrix_gemms(const GemmCall& call);
/// The GEMM of one matrix of a batch.
Gemm one_of(const Gemm& batch, std::int64_t matrix);

}  // namespace trireme::device::cuda
