// SPDX-License-Identifier: Apache-2.0
#include "eigenbases.hpp"

#include "side_factors.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace trireme::optim {

using device::DType;
using device::Tensor;

namespace {

/// The order of eigenvectors that come in ascending order, and how many of them, its last ones,
/// have an eigenvalue of a thousandth of the largest or less.
std::int64_t order_descending(device::Device& device, const Tensor& values, const Tensor& order) {
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
void set_to_units(device::Device& device, const Tensor& rows) {
  device::HostMirror mirror(device);
  float* const values = mirror.of(rows).f32();
  std::fill_n(values, rows.element_count(), 0.0F);
  for (std::int64_t row = 0; row < rows.dim(0); ++row) values[row * rows.dim(1) + row] = 1.0F;
  mirror.store();
}

/// The descending order of products, and the shift of each row.
void order_by(device::Device& device, const Tensor& products, const Tensor& shifts,
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

}  // namespace

Eigenbases::Eigenbases(device::Kernels& kernels, device::Arena& workspace,
                       const ownership::MatrixShape& shape, std::int64_t max_side)
    : kernels_(kernels),
      shape_(shape),
      max_side_(max_side),
      largest_(std::max(shape.rows <= max_side ? shape.rows : 1,
                        shape.columns <= max_side ? shape.columns : std::int64_t{1})),
      matrix_(workspace.allocate(DType::f32, {shape.rows * shape.columns})),
      square_(workspace.allocate(DType::f32, {largest_ * largest_})),
      values_(workspace.allocate(DType::f32, {largest_})),
      order_(workspace.allocate(DType::i32, {largest_})),
      decomposition_(workspace, largest_, device::DecompositionWorkspace::Numbers::fp64),
      measures_(workspace.is_measuring()) {}

void Eigenbases::use(std::span<const Tensor> states) {
  const auto next = [&](std::int64_t length) -> std::optional<Side> {
    if (length > max_side_) return std::nullopt;
    const Side side{{states[0], states[1]}, states[2]};
    states = states.subspan(3);
    return side;
  };
  left_ = next(shape_.rows);
  right_ = next(shape_.columns);
}

void Eigenbases::rotate(Way way, const Tensor& x, const Tensor& y) {
  const auto rows = x.dim(0);
  const auto columns = x.dim(1);
  const auto turned = [&](const Tensor& basis) {
    if (way == Way::to) return basis;
    const auto square = matrix_in(square_, basis.dim(0), basis.dim(1));
    transpose(kernels_, basis, square);
    return square;
  };
  if (left_) {
    multiply(kernels_, turned(left_->basis), x, y);
  } else {
    kernels_.issue(device::Copy{x, y});
  }
  if (!right_) return;
  const auto transposed = matrix_in(matrix_, columns, rows);
  transpose(kernels_, y, transposed);
  const auto product = matrix_in(y, columns, rows);
  multiply(kernels_, turned(right_->basis), transposed, product);
  // y has columns x rows now.
  kernels_.issue(device::Copy{product, transposed});
  transpose(kernels_, transposed, y);
}

void Eigenbases::update_factors(const Tensor& gradient, float beta) {
  if (right_) kernels_.issue(device::SymmetricRankUpdate{gradient, right_->factor, beta});
  if (!left_) return;
  const auto transposed = matrix_in(matrix_, gradient.dim(1), gradient.dim(0));
  transpose(kernels_, gradient, transposed);
  kernels_.issue(device::SymmetricRankUpdate{transposed, left_->factor, beta});
}

/// y = rows of x in this order; a row whose number is not one of x is zero.
void Eigenbases::take_rows(const Tensor& x, const Tensor& order, const Tensor& y) {
  kernels_.issue(device::EmbeddingForward{order, x, 0, y});
}

void Eigenbases::orthonormalise(const Tensor& x) {
  kernels_.issue(device::OrthonormaliseRows{x, values_.slice(0, 0, x.dim(0)), decomposition_});
}

void Eigenbases::begin() {
  if (left_) begin(*left_);
  if (right_) begin(*right_);
}

/// Eigenvectors of a factor in descending order. Those of no eigenvalue, or of one so small that
/// last bits of the gradient turn its vector far, are as good as any basis of what the others
/// leave: unit vectors take their place, made orthonormal.
void Eigenbases::begin(const Side& side) {
  const auto n = side.basis.dim(0);
  const auto ascending = matrix_in(square_, n, n);
  const auto values = values_.slice(0, 0, n);
  const auto order = order_.slice(0, 0, n);
  kernels_.issue(device::SymmetricEigenvectors{side.factor, ascending, values, decomposition_});
  const auto empty = measures_ ? n : order_descending(kernels_.device(), values, order);
  take_rows(ascending, order, side.basis);
  if (empty == 0) return;
  if (!measures_) set_to_units(kernels_.device(), side.basis.slice(0, n - empty, empty));
  orthonormalise(side.basis);
}

/// One power iteration and a QR decomposition, with a shift that changes no eigenvector: else the
/// images of vectors without an eigenvalue are rounding alone, another on each layout. It begins
/// from vectors in the descending order of what they make of the factor (Vyas et al. 2024,
/// algorithm 4), which `order` has afterwards.
void Eigenbases::refresh(const Side& side) {
  const auto n = side.basis.dim(0);
  const auto images = matrix_in(square_, n, n);
  const auto shifts = values_.slice(0, 0, n);
  const auto order = order_.slice(0, 0, n);
  const auto products = decomposition_.integers.slice(0, 0, 2 * n).reshape({n, 2});
  kernels_.issue(device::WideProduct{side.basis, side.factor, images});
  kernels_.issue(device::RowProducts{side.basis, images, products});
  if (!measures_) order_by(kernels_.device(), products, shifts, order);
  kernels_.issue(device::ScaleRows{side.basis, shifts, side.basis});
  kernels_.issue(device::Add{images, side.basis, images});
  take_rows(images, order, side.basis);
  orthonormalise(side.basis);
}

void Eigenbases::refresh(const Tensor& moment, const Tensor& scratch) {
  const auto rows = moment.dim(0);
  const auto columns = moment.dim(1);
  if (left_) {
    refresh(*left_);
    const auto former = matrix_in(matrix_, rows, columns);
    kernels_.issue(device::Copy{moment, former});
    take_rows(former, order_.slice(0, 0, rows), moment);
  }
  if (!right_) return;
  refresh(*right_);
  const auto former = matrix_in(matrix_, columns, rows);
  const auto ordered = matrix_in(scratch, columns, rows);
  transpose(kernels_, moment, former);
  take_rows(former, order_.slice(0, 0, columns), ordered);
  transpose(kernels_, ordered, moment);
}

}  // namespace trireme::optim
