#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cpu/context.hpp"

/// See Kernels for arguments and meaning.
namespace trireme::device::cpu {

void adamw(const Context& context, const AdamW& rule, const Tensor& gradient, const Tensor& master,
           const Tensor& first_moment, const Tensor& second_moment, const Tensor& parameter);
void sgd(const Context& context, const Sgd& rule, const Tensor& gradient, const Tensor& master,
         const Tensor& momentum, const Tensor& parameter);

}  // namespace trireme::device::cpu
