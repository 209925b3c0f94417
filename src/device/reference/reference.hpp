// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

/// Reference backend: plain loops, one theme a file, with which every other backend is compared.
/// Elements are computed in fp32; sums along a row in double, so that a difference found by a
/// comparison is the other backend's.
namespace trireme::device::reference {

/// Computes one operation. The files of this folder specialise it, each for the operations of its
/// theme; the linker names an operation that none of them computes.
template <typename One>
void run(const One& operation);

// Sums of `Kernels`.

double sum_of_squares(const Tensor& x);
double sum(const Tensor& x);

}  // namespace trireme::device::reference
