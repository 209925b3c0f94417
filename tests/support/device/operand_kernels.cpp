// SPDX-License-Identifier: Apache-2.0
#include "support/device/operand_kernels.hpp"

#include <array>
#include <vector>

namespace trireme::device::test {

void OperandKernels::compute(const Operation& operation) {
  operation.visit([this](auto one) {
    std::vector<Operand> operands;
    one.operands([&](const char* name, const Tensor& tensor, Role role) {
      operands.push_back({name, tensor, role});
    });
    run(one.name, operands, [one](Kernels& inner, const Placement& at) {
      auto moved = one;
      moved.operands([&](const char*, Tensor& tensor, Role) { tensor = at(tensor); });
      inner.issue(moved);
    });
  });
}

double OperandKernels::sum_of_squares(const Tensor& x) {
  double result = 0;
  run("sum_of_squares", std::array{Operand{"x", x, Role::input}},
      [&](Kernels& inner, const Placement& at) { result = inner.sum_of_squares(at(x)); });
  return result;
}

double OperandKernels::sum(const Tensor& x) {
  double result = 0;
  run("sum", std::array{Operand{"x", x, Role::input}},
      [&](Kernels& inner, const Placement& at) { result = inner.sum(at(x)); });
  return result;
}

}  // namespace trireme::device::test
