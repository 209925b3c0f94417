// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include "side_factors.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::optim {
namespace {

using device::DType;
using device::Tensor;

/// The largest divisor of a side that is at most `most`.
std::int64_t block_of(std::int64_t side, std::int64_t most) {
  for (auto block = std::min(side, most); block > 1; --block) {
    if (side % block == 0) return block;
  }
  return 1;
}

/// Temporaries of one matrix.
struct Scratch {
  Tensor first;
  Tensor second;
  Tensor third;   // f32 [rows * columns] each
  Tensor square;  // f32, as the larger factor
  Tensor values;  // f32 [largest side of a block]
  device::DecompositionWorkspace decomposition;
  /// Nothing is computed: there are no numbers for the host.
  bool measures = false;
};

class Shampoo final : public MatrixRule {
 public:
  explicit Shampoo(const Rule& rule) : rule_(rule) {}

  std::vector<OwnerState> owner_states(const ownership::MatrixShape& shape) const override {
    const ownership::MatrixShape left{shape.rows, block(shape.rows)};
    const ownership::MatrixShape right{shape.columns, block(shape.columns)};
    return {{"shampoo.first_moment", shape}, {"shampoo.second_moment", shape},
            {"shampoo.left", left},          {"shampoo.right", right},
            {"shampoo.left_root", left},     {"shampoo.right_root", right},
            {"shampoo.updates", {1, 1}}};
  }

  /// A side of m in blocks of b: 3 m b n of products, and its roots.
  double flops(const ownership::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side, std::int64_t other) {
      return 3.0 * static_cast<double>(side * block(side)) * static_cast<double>(other);
    };
    const auto roots = renewal(shape);
    return of_side(shape.rows, shape.columns) + of_side(shape.columns, shape.rows) +
           roots.flops / static_cast<double>(roots.every);
  }

  /// A side of m in blocks of b: 10 m b^2, of which nine are the eigendecomposition's (Golub & Van
  /// Loan 2013, 8.3).
  ownership::Renewal renewal(const ownership::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side) {
      const auto b = static_cast<double>(block(side));
      return 10.0 * static_cast<double>(side) * b * b;
    };
    return {of_side(shape.rows) + of_side(shape.columns), rule_.factors.root_every, 0};
  }

  void compute(device::Kernels& kernels, device::Arena& workspace,
               const MatrixBatch& batch) const override {
    const auto rows = batch.matrices.dim(1);
    const auto columns = batch.matrices.dim(2);
    const auto elements = rows * columns;
    const auto square = std::max(rows * block(rows), columns * block(columns));
    const device::ArenaScope scope(workspace);
    const auto largest = std::max(block(rows), block(columns));
    const Scratch scratch{workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {square}),
                          workspace.allocate(DType::f32, {largest}),
                          device::DecompositionWorkspace(workspace, largest),
                          workspace.is_measuring()};
    for (std::size_t index = 0; index < batch.states.size(); ++index) {
      const auto matrix = batch.matrices.slice(0, static_cast<std::int64_t>(index), 1);
      compute_one(kernels, scratch, matrix.reshape({rows, columns}), batch.states[index],
                  {batch.updates[index], batch.turns[index]});
    }
  }

 private:
  std::int64_t block(std::int64_t side) const { return block_of(side, rule_.factors.max_side); }

  /// Eigenvalues, ascending, become what their vectors are multiplied by: the product of a row with
  /// itself has the power twice.
  void raise(device::Device& device, const Tensor& eigenvalues) const {
    device::HostMirror mirror(device);
    float* const values = mirror.of(eigenvalues).f32();
    mirror.fetch();
    const auto count = eigenvalues.dim(0);
    const double largest = std::max(0.0F, values[count - 1]);
    const double added = largest > 0 ? largest * static_cast<double>(rule_.factors.epsilon) : 1.0;
    std::transform(values, values + count, values, [added](float value) {
      return static_cast<float>(
          std::pow(std::max(0.0, static_cast<double>(value)) + added, -0.125));
    });
    mirror.store();
  }

  /// root = factor^(-1/4) of each block, eigenvalues raised by epsilon of the largest one.
  void take_root(device::Kernels& kernels, const Scratch& scratch, const Tensor& factor,
                 const Tensor& root) const {
    const auto b = factor.dim(1);
    for (std::int64_t first = 0; first < factor.dim(0); first += b) {
      const auto vectors = root.slice(0, first, b);
      const auto values = scratch.values.slice(0, 0, b);
      kernels.issue(device::SymmetricEigenvectors{
          {factor.slice(0, first, b)}, vectors, values, scratch.decomposition});
      if (!scratch.measures) raise(kernels.device(), values);
      kernels.issue(device::ScaleRows{vectors, values, vectors});
      const auto columns = matrix_in(scratch.square, b, b);
      transpose(kernels, vectors, columns);
      kernels.issue(device::SymmetricProduct{.x = columns.reshape({1, b, b}),
                                             .y = vectors.reshape({1, b, b})});
    }
  }

  /// The gradient becomes the direction. `states`: owner_states() but the last.
  void compute_one(device::Kernels& kernels, const Scratch& scratch, const Tensor& gradient,
                   std::span<const Tensor> states, const Age& age) const {
    const auto& first_moment = states[0];
    const auto factors = states.subspan(2, 2);
    const auto roots = states.subspan(4, 2);
    const auto rows = gradient.dim(0);
    const auto columns = gradient.dim(1);
    const auto transposed = matrix_in(scratch.first, columns, rows);
    transpose(kernels, gradient, transposed);
    add_products(kernels, gradient, rule_.beta2, factors[0], scratch.square);
    add_products(kernels, transposed, rule_.beta2, factors[1], scratch.square);
    // Roots are used from the first update on.
    if (age.updates == 0 || age.is_turn(rule_.factors)) {
      for (std::size_t side = 0; side < 2; ++side) {
        take_root(kernels, scratch, factors[side], roots[side]);
      }
    }
    const AdamDirection adam{rule_.beta1, rule_.beta2, rule_.eps, age.updates + 1};
    adam.compute(kernels, gradient, first_moment, states[1], scratch.third);
    const auto length = scratch.values.slice(0, 0, 1);
    kernels.issue(device::MatrixNorms{scratch.third.reshape({1, rows, columns}), length});
    const auto left = matrix_in(scratch.second, rows, columns);
    multiply(kernels, roots[0], first_moment, left);
    transpose(kernels, left, transposed);
    const auto both = matrix_in(scratch.third, columns, rows);
    multiply(kernels, roots[1], transposed, both);
    transpose(kernels, both, left);
    // Small enough to change no norm that is not zero.
    constexpr float no_division_by_zero = 1e-30F;
    const auto& unit = scratch.first;
    kernels.issue(device::NormaliseMatrices{left.reshape({1, rows, columns}),
                                            unit.reshape({1, rows, columns}), no_division_by_zero});
    const auto as_row = [&](const Tensor& x) { return x.reshape({1, rows * columns}); };
    kernels.issue(device::ScaleRows{as_row(unit), length, as_row(gradient)});
  }

  Rule rule_;
};

}  // namespace

std::unique_ptr<MatrixRule> make_shampoo(const Rule& rule) {
  return std::make_unique<Shampoo>(rule);
}

}  // namespace trireme::optim
