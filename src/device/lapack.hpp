// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/decompositions.hpp"

/// LAPACK on matrices in host memory, for every backend of hosts.
namespace trireme::device::lapack {

/// ssyevd; where it does not converge, dsyevd.
void run(const SymmetricEigenvectors& operation);
/// sgeqrf and sorgqr.
void run(const OrthonormaliseRows& operation);

}  // namespace trireme::device::lapack
