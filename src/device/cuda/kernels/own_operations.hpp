// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

namespace trireme::device::cuda {

/// y += bias in every row, where the library that computed y has not added it.
struct AddBias {
  Tensor bias;  // [out]
  Tensor y;     // [rows, out]
};
/// sums += column sums of x: the gradient of a bias.
struct AddColumnSums {
  Tensor x;     // [rows, out]
  Tensor sums;  // f32 [out]
};

/// The upper triangle of each matrix becomes its lower one's mirror image, where a library's GEMMs
/// have computed the lower one alone.
struct MirrorTriangle {
  Tensor y;  // [count, n, n], f32 or bf16, contiguous
};

/// Operations of rows.cu, which reduce over rows or columns.
using RowOperations =
    Joined<NormOperations, CrossEntropyOperations, OperationList<AddBias, AddColumnSums>>;
/// Operations of elements.cu, which go element by element or over a whole tensor.
using ElementOperations = Joined<EmbeddingOperations, ActivationOperations, QuantiseOperations,
                                 ArithmeticOperations, OptimizerOperations, MatrixOperations,
                                 WideProductOperations, OperationList<MirrorTriangle>>;

/// Own kernels of a list of operations, started by a launcher `L`. Each operation is a
/// `run(L&, const Operation&)` of device/cuda/kernels/*.cuh; own_operations.cuh defines issue(),
/// and one .cu for each list instantiates it.
template <typename L, typename List>
struct OwnOperations {
  static void issue(L& launcher, typename List::Pointer operation);
};

template <typename L, typename One>
void issue_own(L& launcher, const One& operation) {
  if constexpr (ElementOperations::holds<One>) {
    OwnOperations<L, ElementOperations>::issue(launcher, &operation);
  } else if constexpr (RowOperations::holds<One>) {
    OwnOperations<L, RowOperations>::issue(launcher, &operation);
  } else {
    OwnOperations<L, AttentionOperations>::issue(launcher, &operation);
  }
}

// Sums of `Kernels`; those that are started are left with the launcher. Instantiated by
// elements.cu.

template <typename L>
double sum_of_squares(L& launcher, const Tensor& x);
template <typename L>
double sum(L& launcher, const Tensor& x);
template <typename L>
void start_sum_of_squares(L& launcher, const Tensor& x);
template <typename L>
void start_sum(L& launcher, const Tensor& x);

}  // namespace trireme::device::cuda
