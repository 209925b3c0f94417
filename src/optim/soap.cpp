// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"

#include "side_factors.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

namespace trireme::optim {
namespace {

using device::DType;
using device::Tensor;

/// Mean of products of a side, and its eigenvectors as rows. In fp32 vectors of small eigenvalues
/// would be those of rounding, others on each layout, and Adam gives them steps as long as any.
struct Side {
  device::WideMatrix factor;  // [side, side]
  Tensor basis;               // f32 [side, side]
};

/// State of one matrix. A side without a basis keeps its own.
struct State {
  Tensor first_moment;   // in the basis of the parameters
  Tensor second_moment;  // in that of the factors
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
  Tensor values;  // f32 [largest side with a basis]
  Tensor order;   // i32, as long
  device::DecompositionWorkspace decomposition;
  /// Nothing is computed: there are no numbers for the host.
  bool measures = false;
};

enum class Way { to_bases, back };

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

  /// A side of m: 7 m^2 n of products (two ways there, one back, its factor), and every
  /// root_every-th time 2 m^3 for the power iteration and 8/3 m^3 for Q of a QR decomposition.
  /// FLOPs of factor and power iteration, in fp64, count twice.
  double flops(const ownership::MatrixShape& shape) const override {
    const auto of_side = [&](std::int64_t side, std::int64_t other) {
      if (!has_basis(side)) return 0.0;
      const auto m = static_cast<double>(side);
      const double refresh = 20.0 / 3.0 * m / static_cast<double>(rule_.factors.root_every);
      return m * m * (8.0 * static_cast<double>(other) + refresh);
    };
    // The FLOPs that are left where no side has a basis are Adam's.
    const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
    return of_side(shape.rows, shape.columns) + of_side(shape.columns, shape.rows) + 10 * elements;
  }

  void compute(device::Kernels& kernels, device::Arena& workspace,
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
                          workspace.allocate(DType::f32, {largest}),
                          workspace.allocate(DType::i32, {largest}),
                          device::DecompositionWorkspace(
                              workspace, largest, device::DecompositionWorkspace::Numbers::fp64),
                          workspace.is_measuring()};
    for (std::size_t index = 0; index < batch.states.size(); ++index) {
      const auto matrix = batch.matrices.slice(0, static_cast<std::int64_t>(index), 1);
      direct(kernels, scratch, matrix.reshape({rows, columns}),
             state_of(batch.states[index], {rows, columns}), batch.updates[index]);
    }
  }

 private:
  bool has_basis(std::int64_t side) const { return side <= rule_.factors.max_side; }

  State state_of(std::span<const Tensor> states, const ownership::MatrixShape& shape) const {
    State state{states[0], states[1], {}, {}};
    const auto side_at = [&](std::size_t first) {
      return Side{{states[first], states[first + 1]}, states[first + 2]};
    };
    std::size_t next = 2;
    if (has_basis(shape.rows)) {
      state.left = side_at(next);
      next += 3;
    }
    if (has_basis(shape.columns)) state.right = side_at(next);
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

  /// y = rows of x in this order; a row whose number is not one of x is zero.
  static void take_rows(device::Kernels& kernels, const Tensor& x, const Tensor& order,
                        const Tensor& y) {
    kernels.issue(device::EmbeddingForward{order, x, 0, y});
  }

  static void orthonormalise(device::Kernels& kernels, const Scratch& scratch, const Tensor& x) {
    kernels.issue(
        device::OrthonormaliseRows{x, scratch.values.slice(0, 0, x.dim(0)), scratch.decomposition});
  }

  /// Eigenvectors of a factor in descending order. Those of no eigenvalue, or of one so small that
  /// last bits of the gradient turn its vector far, are as good as any basis of what the others
  /// leave: unit vectors take their place, made orthonormal.
  static void begin_basis(device::Kernels& kernels, const Scratch& scratch, const Side& side) {
    const auto n = side.basis.dim(0);
    const auto ascending = matrix_in(scratch.square, n, n);
    const auto values = scratch.values.slice(0, 0, n);
    const auto order = scratch.order.slice(0, 0, n);
    kernels.issue(
        device::SymmetricEigenvectors{side.factor, ascending, values, scratch.decomposition});
    const auto empty = scratch.measures ? n : order_descending(kernels.device(), values, order);
    take_rows(kernels, ascending, order, side.basis);
    if (empty == 0) return;
    if (!scratch.measures) set_to_units(kernels.device(), side.basis.slice(0, n - empty, empty));
    orthonormalise(kernels, scratch, side.basis);
  }

  /// The order of eigenvectors that come in ascending order, and how many of them, its last ones,
  /// have an eigenvalue of a thousandth of the largest or less.
  static std::int64_t order_descending(device::Device& device, const Tensor& values,
                                       const Tensor& order) {
    device::HostMirror known(device);
    const float* const ascending = known.of(values).f32();
    known.fetch();
    const auto n = values.dim(0);
    device::HostMirror told(device);
    std::int32_t* const from = told.of(order).i32();
    std::iota(from, from + n, 0);
    std::reverse(from, from + n);
    told.store();
    constexpr float least_share = 1e-3F;
    const auto least = least_share * ascending[n - 1];
    return std::count_if(ascending, ascending + n, [&](float value) { return value <= least; });
  }

  /// Rows become the first unit vectors.
  static void set_to_units(device::Device& device, const Tensor& rows) {
    device::HostMirror mirror(device);
    float* const values = mirror.of(rows).f32();
    std::fill_n(values, rows.element_count(), 0.0F);
    for (std::int64_t row = 0; row < rows.dim(0); ++row) values[row * rows.dim(1) + row] = 1.0F;
    mirror.store();
  }

  /// One power iteration and a QR decomposition, with a shift that changes no eigenvector: else the
  /// images of vectors without an eigenvalue are rounding alone, another on each layout. It begins
  /// from vectors in the descending order of what they make of the factor (Vyas et al. 2024,
  /// algorithm 4), which scratch.order has afterwards.
  static void refresh(device::Kernels& kernels, const Scratch& scratch, const Side& side) {
    const auto n = side.basis.dim(0);
    const auto images = matrix_in(scratch.square, n, n);
    const auto shifts = scratch.values.slice(0, 0, n);
    const auto order = scratch.order.slice(0, 0, n);
    const auto products = scratch.decomposition.integers.slice(0, 0, 2 * n).reshape({n, 2});
    kernels.issue(device::WideProduct{side.basis, side.factor, images});
    kernels.issue(device::RowProducts{side.basis, images, products});
    if (!scratch.measures) order_by(kernels.device(), products, shifts, order);
    kernels.issue(device::ScaleRows{side.basis, shifts, side.basis});
    kernels.issue(device::Add{images, side.basis, images});
    take_rows(kernels, images, order, side.basis);
    orthonormalise(kernels, scratch, side.basis);
  }

  /// The descending order of products, and the shift of each row.
  static void order_by(device::Device& device, const Tensor& products, const Tensor& shifts,
                       const Tensor& order) {
    device::HostMirror known(device);
    const auto words = known.of(products);
    known.fetch();
    std::vector<double> values(static_cast<std::size_t>(products.dim(0)));
    std::memcpy(values.data(), words.raw(), words.byte_count());
    device::HostMirror told(device);
    const auto from = told.of(order);
    const auto added = told.of(shifts);
    constexpr double shift = 1e-4;
    std::fill_n(added.f32(), added.element_count(),
                static_cast<float>(shift * *std::max_element(values.begin(), values.end())));
    std::iota(from.i32(), from.i32() + from.element_count(), 0);
    std::stable_sort(
        from.i32(), from.i32() + from.element_count(), [&](std::int32_t a, std::int32_t b) {
          return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
        });
    told.store();
  }

  /// The second moment follows the order of the vectors that it is in.
  static void refresh_bases(device::Kernels& kernels, const Scratch& scratch, const State& state) {
    const auto& moment = state.second_moment;
    const auto rows = moment.dim(0);
    const auto columns = moment.dim(1);
    if (state.left) {
      refresh(kernels, scratch, *state.left);
      const auto former = matrix_in(scratch.first, rows, columns);
      kernels.issue(device::Copy{moment, former});
      take_rows(kernels, former, scratch.order.slice(0, 0, rows), moment);
    }
    if (!state.right) return;
    refresh(kernels, scratch, *state.right);
    const auto former = matrix_in(scratch.first, columns, rows);
    const auto ordered = matrix_in(scratch.second, columns, rows);
    transpose(kernels, moment, former);
    take_rows(kernels, former, scratch.order.slice(0, 0, columns), ordered);
    transpose(kernels, ordered, moment);
  }

  void direct(device::Kernels& kernels, const Scratch& scratch, const Tensor& gradient,
              const State& state, std::int64_t number) const {
    const auto rows = gradient.dim(0);
    const auto columns = gradient.dim(1);
    const auto second = matrix_in(scratch.second, rows, columns);
    const auto third = matrix_in(scratch.third, rows, columns);
    const auto fourth = matrix_in(scratch.fourth, rows, columns);
    if (number > 0) {
      rotate(kernels, scratch, state, Way::to_bases, gradient, second);
      rotate(kernels, scratch, state, Way::to_bases, state.first_moment, third);
      const AdamDirection adam{rule_.beta1, rule_.beta2, rule_.eps, number};
      adam.compute(kernels, second, third, state.second_moment, fourth);
      rotate(kernels, scratch, state, Way::back, fourth, third);
      kernels.issue(device::MeanMomentum{.beta = rule_.beta1,
                                         .step = device::MeanMomentum::Step::plain,
                                         .gradient = gradient.flat(),
                                         .momentum = state.first_moment.flat(),
                                         .update = fourth.flat()});
    }
    update_factors(kernels, scratch, gradient, state);
    if (number == 0) {
      for (const auto& side : {state.left, state.right}) {
        if (side) begin_basis(kernels, scratch, *side);
      }
      kernels.issue(device::Fill{gradient, 0.0F});
      return;
    }
    kernels.issue(device::Copy{third, gradient});
    if (number % rule_.factors.root_every == 0) refresh_bases(kernels, scratch, state);
  }

  void update_factors(device::Kernels& kernels, const Scratch& scratch, const Tensor& gradient,
                      const State& state) const {
    if (state.right) {
      kernels.issue(device::SymmetricRankUpdate{gradient, state.right->factor, rule_.beta2});
    }
    if (!state.left) return;
    const auto transposed = matrix_in(scratch.first, gradient.dim(1), gradient.dim(0));
    transpose(kernels, gradient, transposed);
    kernels.issue(device::SymmetricRankUpdate{transposed, state.left->factor, rule_.beta2});
  }

  Rule rule_;
};

}  // namespace

std::unique_ptr<MatrixRule> make_soap(const Rule& rule) {
  return std::make_unique<Soap>(rule);
}

}  // namespace trireme::optim
