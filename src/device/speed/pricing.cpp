// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/pricing.hpp"

#include "trireme/device/gemm_tuning.hpp"

#include <algorithm>

namespace trireme::device {
namespace {

double product_of(const Tensor& one, const Tensor& other, int dimension) {
  return 2.0 * static_cast<double>(one.element_count()) * static_cast<double>(other.dim(dimension));
}

/// 2 FLOPs for each multiplication of a linear layer's GEMM.
double flops_of(const GemmCall& call) {
  switch (call.kind) {
    case GemmCall::Kind::forward:
    case GemmCall::Kind::quantised_forward:
    case GemmCall::Kind::gelu_forward:
      return product_of(call.x, call.w, 0);
    case GemmCall::Kind::backward_input:
    case GemmCall::Kind::backward_gelu:
    case GemmCall::Kind::backward_weight:
      return product_of(call.x, call.w, 1);
    case GemmCall::Kind::symmetric_product:
    case GemmCall::Kind::add_product:
      return 0;
  }
  return 0;
}

/// Two products over the keys that a query may see.
double flops_of(const Attention& attention) {
  const double seen = attention.causal ? 0.5 : 1.0;
  return 2.0 * seen * product_of(attention.q, attention.k, 1);
}

class PricingKernels final : public Kernels {
 public:
  PricingKernels(const KernelRates& rates, double& seconds) : rates_(rates), seconds_(seconds) {}

  const char* name() const override { return "pricing"; }
  double sum_of_squares(const Tensor&) override { return 0.0; }
  double sum(const Tensor&) override { return 0.0; }
  void synchronize() override {}

 private:
  void compute(const Operation& operation) override {
    operation.visit([this]<typename One>(One one) {
      double flops = 0;
      double bytes = 0;
      one.operands([&](const char*, const auto& operand, Role role) {
        if constexpr (std::is_same_v<std::decay_t<decltype(operand)>, Tensor>) {
          const double passes = role == Role::in_out ? 2.0 : 1.0;
          bytes += passes * static_cast<double>(operand.byte_count());
        }
      });
      if constexpr (GemmOperations::holds<One>) flops = flops_of(gemm_call(one));
      if constexpr (std::is_same_v<One, Attention>) flops = flops_of(one);
      // Five products, two of which are the forward's.
      if constexpr (std::is_same_v<One, AttentionBackward>) flops = 2.5 * flops_of(one.forward);
      seconds_ +=
          rates_.launch_seconds + std::max(flops / rates_.flops, bytes / rates_.memory_bytes);
    });
  }

  KernelRates rates_;
  double& seconds_;
};

}  // namespace

std::unique_ptr<Kernels> make_pricing_kernels(const KernelRates& rates, double& seconds) {
  return std::make_unique<PricingKernels>(rates, seconds);
}

}  // namespace trireme::device
