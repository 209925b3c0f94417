// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"

#include <cstdint>

/// LAPACK on matrices in host memory, f32, contiguous and row-major. Each routine runs on the
/// calling thread alone, so that the bits of a result depend on its arguments only.
namespace trireme::optim::lapack {

/// Memory for the routines below, of matrices up to [n, n].
struct Workspace {
  device::Tensor values;    // f32 [n]
  device::Tensor reals;     // f32 [1 + 6 n + 2 n^2], what ssyevd asks for
  device::Tensor integers;  // i32 [3 + 5 n]

  Workspace(device::Arena& arena, std::int64_t n);
};

/// Eigenvectors of a symmetric matrix [n, n] become the rows of `vectors` [n, n], in the order of
/// their eigenvalues, ascending, which stand in workspace.values. ssyevd; where it does not
/// converge, dsyevd. Throws base::Error (internal) where neither does.
void eigenvectors(const device::Tensor& symmetric, const device::Tensor& vectors,
                  const Workspace& workspace);

/// Rows of x [n, n] become orthonormal, the first k of them spanning what the first k did: Q of the
/// QR decomposition of transpose(x), transposed. sgeqrf and sorgqr.
void orthonormalise_rows(const device::Tensor& x, const Workspace& workspace);

}  // namespace trireme::optim::lapack
