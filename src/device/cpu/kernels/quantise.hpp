// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

#include "device/cpu/runtime/context.hpp"

#include <array>
#include <vector>

namespace trireme::device::cpu {

/// Values of codes, in bf16, which holds every product of a code and a power of two exactly: GEMMs
/// of these values are the FP8 GEMMs. CPUs have no others.
class QuantisedValues {
 public:
  /// [rows, columns], valid until the operand of that number, 0 or 1, is asked for again.
  Tensor values(const Context& context, const Quantised& quantised, std::size_t operand);

 private:
  std::array<std::vector<Bf16>, 2> memory_;
};

}  // namespace trireme::device::cpu
