// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/activations.hpp"
#include "trireme/device/operations/arithmetic.hpp"
#include "trireme/device/operations/attention.hpp"
#include "trireme/device/operations/cross_entropy.hpp"
#include "trireme/device/operations/decompositions.hpp"
#include "trireme/device/operations/embedding.hpp"
#include "trireme/device/operations/gemm.hpp"
#include "trireme/device/operations/matrices.hpp"
#include "trireme/device/operations/norm.hpp"
#include "trireme/device/operations/optimizer.hpp"
#include "trireme/device/operations/quantise.hpp"
#include "trireme/device/operations/wide_products.hpp"

/// Operations of kernels, as values: what is computed, from which tensors into which. Each has a
/// name, its operands with their shapes, and what it may do with each (`operands()` visits them as
/// name, tensor, role). `Kernels::issue()` computes one, after its `check()` of their shapes
/// (device/operations), which no backend repeats. Every operation takes tensors of f32 or bf16
/// where the comment says nothing else, the same type within one operation unless said.
///
/// A new operation is a struct in the header of its subject and in the list at its end, its
/// `check()` in the subject's file of device/operations, and a `run()` in that of device/reference,
/// device/cpu/kernels and device/cuda/kernels (docs/gpu-backend.md).
namespace trireme::device {

using Operations =
    Joined<GemmOperations, AttentionOperations, NormOperations, CrossEntropyOperations,
           EmbeddingOperations, ActivationOperations, QuantiseOperations, ArithmeticOperations,
           OptimizerOperations, MatrixOperations, MatrixProductOperations, WideProductOperations,
           DecompositionOperations>;

/// Any one operation, by reference: it must not outlive what it was made from.
class Operation {
 public:
  template <typename One>
  requires Operations::holds<One> Operation(const One& one) : operation_(&one) {}

  /// Calls the visitor with the operation itself.
  template <typename Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit([&](const auto* one) -> decltype(auto) { return visitor(*one); }, operation_);
  }
  /// "gelu_forward".
  const char* name() const {
    return visit([](const auto& one) { return one.name; });
  }
  /// Ends as a defect (base/contract.hpp) that names the operation where its operands do not fit.
  void check() const {
    visit([](const auto& one) { one.check(); });
  }
  /// The operation, if it is of this kind; else null.
  template <typename One>
  const One* get_if() const {
    const auto* const one = std::get_if<const One*>(&operation_);
    return one != nullptr ? *one : nullptr;
  }

 private:
  Operations::Pointer operation_;
};

}  // namespace trireme::device
