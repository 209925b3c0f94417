// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::optim {
namespace {

using device::Tensor;

class Muon final : public MatrixRule {
 public:
  Muon(const MuonRule& rule, device::DType products) : rule_(rule), products_(products) {}

  std::vector<std::string> state_names() const override { return {"muon.momentum"}; }

  double flops(const ownership::MatrixShape& shape) const override {
    return ownership::newton_schulz_flops(form_of(rule_.newton_schulz, shape), shape,
                                          rule_.newton_schulz.steps);
  }

  ownership::SplitCost split(const ownership::MatrixShape& shape) const override {
    return ownership::split_newton_schulz(shape, rule_.newton_schulz.steps);
  }

  const NewtonSchulz* iteration() const override { return &rule_.newton_schulz; }

  void prepare(device::Kernels& kernels, const Tensor& gradient, float gradient_scale,
               std::span<const Tensor> states, const Tensor& to) const override {
    kernels.issue(device::MeanMomentum{.beta = rule_.momentum,
                                       .step = rule_.step,
                                       .gradient_scale = gradient_scale,
                                       .gradient = gradient,
                                       .momentum = states[0],
                                       .update = to});
  }

  void compute(device::Kernels& kernels, device::Arena& workspace,
               const MatrixBatch& batch) const override {
    orthogonalise(kernels, workspace, rule_.newton_schulz, products_, batch.matrices);
  }

  float factor(const ownership::MatrixShape& shape) const override {
    const auto out = static_cast<double>(shape.rows);
    const auto in = static_cast<double>(shape.columns);
    switch (rule_.scale) {
      case MatrixScale::original:
        return static_cast<float>(std::sqrt(std::max(1.0, out / in)));
      case MatrixScale::match_rms_adamw:
        return static_cast<float>(0.2 * std::sqrt(std::max(out, in)));
      case MatrixScale::unit_rms_norm:
        return static_cast<float>(std::sqrt(out / in));
    }
    return 1.0F;
  }

 private:
  MuonRule rule_;
  device::DType products_;
};

}  // namespace

std::unique_ptr<MatrixRule> make_muon(const MuonRule& rule, device::DType products) {
  return std::make_unique<Muon>(rule, products);
}

}  // namespace trireme::optim
