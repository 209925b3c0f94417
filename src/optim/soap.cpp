// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include "lapack.hpp"
#include "side_factors.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace trireme::optim {
namespace {

using device::DType;
using device::Tensor;

/// Mean of products of a side, and its eigenvectors as rows.
struct Side {
  Tensor factor;  // f32 [side, side]
  Tensor basis;   // f32 [side, side]
};

/// State of one matrix. A side without a basis keeps its own.
struct State {
  Tensor first_moment;   // in the basis of the parameters
  Tensor second_moment;  // in that of the factors
  Tensor updates;        // [1, 1]
  std::optional<Side> left;
  std::optional<Side> right;
};

/// Temporaries of one matrix.
struct Scratch {
  Tensor first;
  Tensor second;
  Tensor third;
  Tensor fourth;  // f32 [rows * columns] each
  Tensor square;  // f32, as the larger basis
  lapack::Workspace lapack;
};

enum class Way { to_bases, back };

class Soap final : public MatrixRule {
 public:
  explicit Soap(const Rule& rule) : rule_(rule) {}

  std::vector<OwnerState> owner_states(const layout::MatrixShape& shape) const override {
    std::vector<OwnerState> states{
        {"soap.first_moment", shape}, {"soap.second_moment", shape}, {"soap.updates", {1, 1}}};
    const auto add = [&](std::int64_t side, const char* factor, const char* basis) {
      if (!has_basis(side)) return;
      states.push_back({factor, {side, side}});
      states.push_back({basis, {side, side}});
    };
    add(shape.rows, "soap.left", "soap.left_basis");
    add(shape.columns, "soap.right", "soap.right_basis");
    return states;
  }

  /// A side of m: 7 m^2 n of products (two ways there, one back, its factor), and every
  /// root_every-th time 2 m^3 for the power iteration and 8/3 m^3 for Q of a QR decomposition.
  double flops(const layout::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side, std::int64_t other) {
      if (!has_basis(side)) return 0.0;
      const auto m = static_cast<double>(side);
      const double refresh = 14.0 / 3.0 * m / static_cast<double>(rule_.factors.root_every);
      return m * m * (7.0 * static_cast<double>(other) + refresh);
    };
    // What is left where no side has a basis is Adam's.
    const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
    return of_side(shape.rows, shape.columns) + of_side(shape.columns, shape.rows) + 10 * elements;
  }

  void directions(device::Kernels& kernels, device::Arena& workspace,
                  const MatrixBatch& batch) const override {
    const auto rows = batch.matrices.dim(1);
    const auto columns = batch.matrices.dim(2);
    const auto elements = rows * columns;
    const auto largest =
        std::max(has_basis(rows) ? rows : 1, has_basis(columns) ? columns : std::int64_t{1});
    const device::ArenaScope scope(workspace);
    const Scratch scratch{workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {elements}),
                          workspace.allocate(DType::f32, {largest * largest}),
                          lapack::Workspace(workspace, largest)};
    // Host memory that measures cannot be read, and needs no numbers.
    if (workspace.is_measuring()) return;
    for (std::size_t index = 0; index < batch.states.size(); ++index) {
      const auto matrix = batch.matrices.slice(0, static_cast<std::int64_t>(index), 1);
      direct(kernels, scratch, matrix.reshape({rows, columns}),
             state_of(batch.states[index], {rows, columns}));
    }
  }

 private:
  bool has_basis(std::int64_t side) const { return side <= rule_.factors.max_side; }

  State state_of(std::span<const Tensor> states, const layout::MatrixShape& shape) const {
    State state{states[0], states[1], states[2], {}, {}};
    std::size_t next = 3;
    if (has_basis(shape.rows)) {
      state.left = Side{states[next], states[next + 1]};
      next += 2;
    }
    if (has_basis(shape.columns)) state.right = Side{states[next], states[next + 1]};
    return state;
  }

  /// y = Q_L^T x Q_R, or back again, for bases Q whose vectors are rows here. Uses `first` and
  /// `square`; y is neither.
  static void rotate(device::Kernels& kernels, const Scratch& scratch, const State& state, Way way,
                     const Tensor& x, const Tensor& y) {
    const auto rows = x.dim(0);
    const auto columns = x.dim(1);
    const auto turned = [&](const Tensor& basis) {
      if (way == Way::to_bases) return basis;
      const auto square = matrix_in(scratch.square, basis.dim(0), basis.dim(1));
      transpose(kernels, basis, square);
      return square;
    };
    if (state.left) {
      multiply(kernels, turned(state.left->basis), x, y);
    } else {
      kernels.issue(device::Copy{x, y});
    }
    if (!state.right) return;
    const auto transposed = matrix_in(scratch.first, columns, rows);
    transpose(kernels, y, transposed);
    const auto product = matrix_in(y, columns, rows);
    multiply(kernels, turned(state.right->basis), transposed, product);
    // y has columns x rows now.
    kernels.issue(device::Copy{product, transposed});
    transpose(kernels, transposed, y);
  }

  /// Eigenvectors of a factor in descending order. Those of no eigenvalue are any basis of what the
  /// others leave, and rounding would choose it: unit vectors take their place, made orthonormal.
  static void begin_basis(const Scratch& scratch, const Side& side) {
    lapack::eigenvectors(side.factor, side.basis, scratch.lapack);
    const auto n = side.basis.dim(0);
    const float* const values = scratch.lapack.values.f32();
    constexpr float rounding = 1e-5F;
    const auto least = rounding * values[n - 1];
    const auto empty =
        std::count_if(values, values + n, [&](float value) { return value <= least; });
    float* const rows = side.basis.f32();
    for (std::int64_t row = 0; row < n / 2; ++row) {
      std::swap_ranges(rows + row * n, rows + (row + 1) * n, rows + (n - 1 - row) * n);
    }
    if (empty == 0) return;
    std::fill(rows + (n - empty) * n, rows + n * n, 0.0F);
    for (std::int64_t unit = 0; unit < empty; ++unit) rows[(n - empty + unit) * n + unit] = 1.0F;
    lapack::orthonormalise_rows(side.basis, scratch.lapack);
  }

  /// One power iteration and a QR decomposition, with a shift that changes no eigenvector: else the
  /// images of vectors without an eigenvalue are rounding alone, another on each layout. It begins
  /// from vectors in the descending order of what they make of the factor (Vyas et al. 2024,
  /// algorithm 4). Returns that order.
  static std::vector<std::int64_t> refresh(device::Kernels& kernels, const Scratch& scratch,
                                           const Side& side) {
    const auto n = side.basis.dim(0);
    const auto images = matrix_in(scratch.square, n, n);
    multiply(kernels, side.basis, side.factor, images);
    std::vector<double> values;
    for (std::int64_t row = 0; row < n; ++row) {
      const float* const vector = side.basis.f32() + row * n;
      values.push_back(std::inner_product(vector, vector + n, images.f32() + row * n, 0.0));
    }
    constexpr double shift = 1e-4;
    const auto added = static_cast<float>(shift * *std::max_element(values.begin(), values.end()));
    for (std::int64_t at = 0; at < n * n; ++at) {
      images.f32()[at] += added * side.basis.f32()[at];
    }
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    for (std::int64_t row = 0; row < n; ++row) {
      const auto from = order[static_cast<std::size_t>(row)];
      std::copy_n(images.f32() + from * n, n, side.basis.f32() + row * n);
    }
    lapack::orthonormalise_rows(side.basis, scratch.lapack);
    return order;
  }

  static void refresh_bases(device::Kernels& kernels, const Scratch& scratch, const State& state) {
    const auto& moment = state.second_moment;
    const auto rows = moment.dim(0);
    const auto columns = moment.dim(1);
    const auto former = matrix_in(scratch.first, rows, columns);
    if (state.left) {
      const auto order = refresh(kernels, scratch, *state.left);
      kernels.issue(device::Copy{moment, former});
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto from = order[static_cast<std::size_t>(row)];
        std::copy_n(former.f32() + from * columns, columns, moment.f32() + row * columns);
      }
    }
    if (!state.right) return;
    const auto order = refresh(kernels, scratch, *state.right);
    kernels.issue(device::Copy{moment, former});
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      const auto from = order[static_cast<std::size_t>(at % columns)];
      moment.f32()[at] = former.f32()[at / columns * columns + from];
    }
  }

  void direct(device::Kernels& kernels, const Scratch& scratch, const Tensor& gradient,
              const State& state) const {
    const auto rows = gradient.dim(0);
    const auto columns = gradient.dim(1);
    const auto number = static_cast<std::int64_t>(state.updates.f32()[0]);
    state.updates.f32()[0] = static_cast<float>(number + 1);
    const auto second = matrix_in(scratch.second, rows, columns);
    const auto third = matrix_in(scratch.third, rows, columns);
    const auto fourth = matrix_in(scratch.fourth, rows, columns);
    if (number > 0) {
      rotate(kernels, scratch, state, Way::to_bases, gradient, second);
      rotate(kernels, scratch, state, Way::to_bases, state.first_moment, third);
      const AdamDirection adam{rule_.beta1, rule_.beta2, rule_.eps, number};
      adam.take(kernels, second, third, state.second_moment, fourth);
      rotate(kernels, scratch, state, Way::back, fourth, third);
      const auto flat = [](const Tensor& x) { return x.reshape({x.element_count()}); };
      kernels.issue(device::MeanMomentum{rule_.beta1, device::MeanMomentum::Step::plain, 1.0F,
                                         flat(gradient), flat(state.first_moment), flat(fourth)});
    }
    update_factors(kernels, scratch, gradient, state);
    if (number == 0) {
      for (const auto& side : {state.left, state.right}) {
        if (side) begin_basis(scratch, *side);
      }
      kernels.issue(device::Fill{gradient, 0.0F});
      return;
    }
    kernels.issue(device::Copy{third, gradient});
    if (number % rule_.factors.root_every == 0) refresh_bases(kernels, scratch, state);
  }

  void update_factors(device::Kernels& kernels, const Scratch& scratch, const Tensor& gradient,
                      const State& state) const {
    if (state.left) {
      add_products(kernels, gradient, rule_.beta2, state.left->factor, scratch.square);
    }
    if (!state.right) return;
    const auto transposed = matrix_in(scratch.first, gradient.dim(1), gradient.dim(0));
    transpose(kernels, gradient, transposed);
    add_products(kernels, transposed, rule_.beta2, state.right->factor, scratch.square);
  }

  Rule rule_;
};

}  // namespace

std::unique_ptr<MatrixRule> make_soap(const Rule& rule) {
  return std::make_unique<Soap>(rule);
}

}  // namespace trireme::optim
