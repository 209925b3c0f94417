// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cpu/runtime/context.hpp"

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

struct AdamWOperands {
  Tensor gradient;
  Tensor master;
  Tensor first_moment;
  Tensor second_moment;
  Tensor parameter;
};
void adamw(const Context& context, const AdamW& rule, const AdamWOperands& operands);
void sgd(const Context& context, const Sgd& rule, const Tensor& gradient, const Tensor& master,
         const Tensor& momentum, const Tensor& parameter);
void round_stochastically(const Context& context, const Tensor& master,
                          const StochasticRounding& rounding, const Tensor& parameter);

}  // namespace trireme::device::cpu
