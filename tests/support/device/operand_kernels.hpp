// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <functional>
#include <span>

namespace trireme::device::test {

struct Operand {
  const char* name = nullptr;
  Tensor tensor;
  Role role = Role::input;
};

/// Kernels that pass every operation on to others, with a list of its operands and their roles: a
/// place to check what is touched, or to move tensors to where the others can reach them.
class OperandKernels : public Kernels {
 public:
  /// Where the inner kernels find a tensor; an empty tensor stays empty.
  using Placement = std::function<Tensor(const Tensor&)>;
  /// Body of all but sums may be kept and called later: it holds what it needs.
  using Body = std::function<void(Kernels& inner, const Placement& at)>;

  double sum_of_squares(const Tensor& x) override;
  double sum(const Tensor& x) override;

 private:
  void compute(const Operation& operation) override;
  virtual void run(const char* operation, std::span<const Operand> operands, const Body& body) = 0;
};

}  // namespace trireme::device::test
