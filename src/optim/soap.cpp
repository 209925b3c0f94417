// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include "eigenbases.hpp"
#include "side_factors.hpp"

#include <array>
#include <span>
#include <vector>

namespace trireme::optim {
namespace {

using device::DType;
using device::Tensor;

class Soap final : public MatrixRule {
 public:
  explicit Soap(const Rule& rule) : rule_(rule) {}

  std::vector<OwnerState> owner_states(const ownership::MatrixShape& shape) const override {
    std::vector<OwnerState> states{{"soap.first_moment", shape}, {"soap.second_moment", shape}};
    const auto add = [&](std::int64_t side, const std::string& factor) {
      if (!has_basis(side)) return;
      for (const auto* const part : {"", "_low", "_basis"}) {
        states.push_back({factor + part, {side, side}});
      }
    };
    add(shape.rows, "soap.left");
    add(shape.columns, "soap.right");
    states.push_back({"soap.updates", {1, 1}});
    return states;
  }

  /// A side of m: 7 m^2 n of products (two ways there, one back, its factor), and its renewals.
  /// FLOPs of the factor, in fp64, count twice.
  double flops(const ownership::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side, std::int64_t other) {
      if (!has_basis(side)) return 0.0;
      const auto m = static_cast<double>(side);
      return 8.0 * m * m * static_cast<double>(other);
    };
    const auto renewed = renewal(shape);
    // The FLOPs that are left where no side has a basis are Adam's.
    const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
    return of_side(shape.rows, shape.columns) + of_side(shape.columns, shape.rows) + 10 * elements +
           renewed.flops / static_cast<double>(renewed.every);
  }

  /// A side of m: 2 m^3 for the power iteration, in fp64, which count twice, and 8/3 m^3 for Q of a
  /// QR decomposition.
  ownership::Renewal renewal(const ownership::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side) {
      const auto m = static_cast<double>(side);
      return has_basis(side) ? 20.0 / 3.0 * m * m * m : 0.0;
    };
    return {of_side(shape.rows) + of_side(shape.columns), rule_.factors.root_every, 0};
  }

  void compute(device::Kernels& kernels, device::Arena& workspace,
               const MatrixBatch& batch) const override {
    const auto rows = batch.matrices.dim(1);
    const auto columns = batch.matrices.dim(2);
    const device::ArenaScope scope(workspace);
    const auto allocate = [&] { return workspace.allocate(DType::f32, {rows, columns}); };
    const Scratch scratch{allocate(), allocate(), allocate()};
    Eigenbases bases(kernels, workspace, {rows, columns}, rule_.factors.max_side);
    for (std::size_t index = 0; index < batch.states.size(); ++index) {
      const auto matrix = batch.matrices.slice(0, static_cast<std::int64_t>(index), 1);
      const std::span<const Tensor> states(batch.states[index]);
      bases.use(states.subspan(2));
      compute_one(kernels, scratch, bases, matrix.reshape({rows, columns}), states,
                  {batch.updates[index], batch.turns[index]});
    }
  }

 private:
  using Scratch = std::array<Tensor, 3>;  // f32 [rows, columns] each

  bool has_basis(std::int64_t side) const { return side <= rule_.factors.max_side; }

  /// The gradient becomes the direction. The first moment is in the basis of the parameters, the
  /// second in that of the factors.
  void compute_one(device::Kernels& kernels, const Scratch& scratch, Eigenbases& bases,
                   const Tensor& gradient, std::span<const Tensor> moments, const Age& age) const {
    const auto number = age.updates;
    const auto& [first, second, third] = scratch;
    if (number > 0) {
      bases.rotate_to(gradient, first);
      bases.rotate_to(moments[0], second);
      const AdamDirection adam{rule_.beta1, rule_.beta2, rule_.eps, number};
      adam.compute(kernels, first, second, moments[1], third);
      bases.rotate_back(third, second);
      kernels.issue(device::MeanMomentum{.beta = rule_.beta1,
                                         .step = device::MeanMomentum::Step::plain,
                                         .gradient = gradient.flat(),
                                         .momentum = moments[0].flat(),
                                         .update = third.flat()});
    }
    bases.update_factors(gradient, rule_.beta2);
    if (number == 0) {
      bases.begin();
      kernels.issue(device::Fill{gradient, 0.0F});
      return;
    }
    kernels.issue(device::Copy{second, gradient});
    if (age.is_turn(rule_.factors)) bases.refresh(moments[1], first);
  }

  Rule rule_;
};

}  // namespace

std::unique_ptr<MatrixRule> make_soap(const Rule& rule) {
  return std::make_unique<Soap>(rule);
}

}  // namespace trireme::optim
