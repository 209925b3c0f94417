#pragma once

#include "device/cuda/kernels/columns.cuh"

#include <cmath>

namespace trireme::device::cuda {

template <typename T>
struct NormForwardOperands {
  Matrix<const T> x;
  Matrix<const T> residual;
  Matrix<T> sum;
  /// What is normalised: the sum, or x.
  Matrix<const T> kept;
  simt::Global<const T> weight;
  simt::Global<const T> bias;
  Matrix<T> y;
  simt::Global<float> mean;
  simt::Global<float> rstd;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float eps = 0.0F;
  bool layer = false;
};

/// A team takes a row at a time. Its threads read what they wrote themselves, from a cache: the
/// variance is that of the differences from the mean, in a pass of its own. `Real` is double for
/// narrow rows, whose gradients are small differences.
template <typename T, int N, typename Real, bool whole_block>
__global__ void __launch_bounds__(256, 2) norm_forward_rows(NormForwardOperands<T> norm) {
  using Row = Team<whole_block>;
  const auto count = static_cast<Real>(norm.width);
  const auto begin = std::int64_t{Row::rank()} * N;
  const auto step = std::int64_t{Row::size()} * N;
  for (auto row = Row::index(); row < norm.rows; row += Row::count()) {
    Real total[1] = {0};
    for (auto c = begin; c < norm.width; c += step) {
      auto v = load_floats<N>(norm.x.row(row), c);
      if (norm.residual.data) {
        const auto r = load_floats<N>(norm.residual.row(row), c);
        for (int i = 0; i < N; ++i) v[i] = simt::widen(simt::narrow<T>(v[i] + r[i]));
        store_floats<N>(norm.sum.row(row), c, v);
      }
      for (int i = 0; i < N; ++i) {
        const auto value = static_cast<Real>(v[i]);
        total[0] += norm.layer ? value : value * value;
      }
    }
    Row::sums(total);
    const Real mean = norm.layer ? total[0] / count : Real{0};
    if (norm.layer) {
      total[0] = 0;
      for (auto c = begin; c < norm.width; c += step) {
        const auto v = load_floats<N>(norm.kept.row(row), c);
        for (int i = 0; i < N; ++i) {
          const auto centered = static_cast<Real>(v[i]) - mean;
          total[0] += centered * centered;
        }
      }
      Row::sums(total);
    }
    const Real rstd = Real{1} / std::sqrt(total[0] / count + static_cast<Real>(norm.eps));
    if (Row::rank() == 0) {
      if (norm.mean) norm.mean.store(row, static_cast<float>(mean));
      if (norm.rstd) norm.rstd.store(row, static_cast<float>(rstd));
    }
    for (auto c = begin; c < norm.width; c += step) {
      auto v = load_floats<N>(norm.kept.row(row), c);
      const auto w = load_floats<N>(norm.weight, c);
      for (int i = 0; i < N; ++i) {
        v[i] = static_cast<float>((static_cast<Real>(v[i]) - mean) * rstd) * w[i];
      }
      if (norm.bias) {
        const auto b = load_floats<N>(norm.bias, c);
        for (int i = 0; i < N; ++i) v[i] += b[i];
      }
      store_floats<N>(norm.y.row(row), c, v);
    }
  }
}

template <typename T>
struct NormBackwardOperands {
  Matrix<const T> dy;
  Matrix<const T> x;
  simt::Global<const T> weight;
  simt::Global<const float> mean;
  simt::Global<const float> rstd;
  Matrix<const T> d_residual;
  Matrix<T> dx;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float eps = 0.0F;
  bool layer = false;
};

template <typename Real>
struct RowStatistics {
  Real mean;
  Real rstd;
};

/// From what the forward kept; of narrow rows again from the row itself, because there its rounding
/// is as large as the gradient.
template <typename T, typename Real, bool whole_block>
__device__ RowStatistics<Real> row_statistics(const NormBackwardOperands<T>& norm,
                                              std::int64_t row) {
  using Row = Team<whole_block>;
  if constexpr (std::is_same_v<Real, float>) {
    return {norm.layer ? norm.mean.load(row) : 0.0F, norm.rstd.load(row)};
  } else {
    const auto count = static_cast<Real>(norm.width);
    Real total[1] = {0};
    for (std::int64_t c = Row::rank(); c < norm.width; c += Row::size()) {
      total[0] += static_cast<Real>(simt::widen(norm.x.row(row).load(c)));
    }
    Row::sums(total);
    const Real mean = norm.layer ? total[0] / count : Real{0};
    total[0] = 0;
    for (std::int64_t c = Row::rank(); c < norm.width; c += Row::size()) {
      const auto centered = static_cast<Real>(simt::widen(norm.x.row(row).load(c))) - mean;
      total[0] += centered * centered;
    }
    Row::sums(total);
    return {mean, Real{1} / std::sqrt(total[0] / count + static_cast<Real>(norm.eps))};
  }
}

/// With g = dy * weight and h the normalised row, dx = rstd * (g - mean(g) - h * mean(g * h)) +
/// d_residual; RMS norm lacks the first mean.
template <typename T, int N, typename Real, bool whole_block>
__global__ void __launch_bounds__(256, 2) norm_backward_rows(NormBackwardOperands<T> norm) {
  using Row = Team<whole_block>;
  const auto count = static_cast<Real>(norm.width);
  const auto begin = std::int64_t{Row::rank()} * N;
  const auto step = std::int64_t{Row::size()} * N;
  for (auto row = Row::index(); row < norm.rows; row += Row::count()) {
    const auto [mean, rstd] = row_statistics<T, Real, whole_block>(norm, row);
    Real totals[2] = {0, 0};
    for (auto c = begin; c < norm.width; c += step) {
      const auto d = load_floats<N>(norm.dy.row(row), c);
      const auto v = load_floats<N>(norm.x.row(row), c);
      const auto w = load_floats<N>(norm.weight, c);
      for (int i = 0; i < N; ++i) {
        const auto g = static_cast<Real>(d[i]) * static_cast<Real>(w[i]);
        totals[0] += g;
        totals[1] += g * ((static_cast<Real>(v[i]) - mean) * rstd);
      }
    }
    Row::sums(totals);
    const Real mean_g = norm.layer ? totals[0] / count : Real{0};
    const Real mean_gh = totals[1] / count;
    for (auto c = begin; c < norm.width; c += step) {
      const auto d = load_floats<N>(norm.dy.row(row), c);
      const auto v = load_floats<N>(norm.x.row(row), c);
      const auto w = load_floats<N>(norm.weight, c);
      Floats<N> result;
      for (int i = 0; i < N; ++i) {
        const auto g = static_cast<Real>(d[i]) * static_cast<Real>(w[i]);
        const auto h = (static_cast<Real>(v[i]) - mean) * rstd;
        result[i] = static_cast<float>(rstd * (g - mean_g - h * mean_gh));
      }
      if (norm.d_residual.data) {
        const auto direct = load_floats<N>(norm.d_residual.row(row), c);
        for (int i = 0; i < N; ++i) result[i] += direct[i];
      }
      store_floats<N>(norm.dx.row(row), c, result);
    }
  }
}

/// What a row adds to the gradients of weight and bias.
template <typename T>
struct NormColumns {
  static constexpr int count = 2;
  Matrix<const T> dy;
  Matrix<const T> x;
  simt::Global<const float> mean;
  simt::Global<const float> rstd;

  template <int N>
  __device__ void add(std::int64_t row, std::int64_t column, Floats<N> (&sums)[2]) const {
    const auto d = load_floats<N>(dy.row(row), column);
    const auto v = load_floats<N>(x.row(row), column);
    const float center = mean ? mean.load(row) : 0.0F;
    const float factor = rstd.load(row);
    for (int i = 0; i < N; ++i) {
      sums[0][i] += d[i] * ((v[i] - center) * factor);
      sums[1][i] += d[i];
    }
  }
};

/// How rows are shared out. A row of few packs is a warp's, a longer one a block's.
struct NormPlan {
  Grid grid;
  bool packed = false;
  bool narrow = false;
  bool whole_block = false;
};

template <typename L>
NormPlan plan_norm(const L& launcher, const Elements& elements, std::int64_t pack) {
  constexpr std::int64_t narrow_width = 32;
  constexpr std::int64_t widest_for_a_warp = 1024;
  NormPlan plan;
  plan.narrow = elements.width < narrow_width;
  plan.packed = elements.packed && elements.width % pack == 0 && !plan.narrow;
  plan.whole_block = elements.width > widest_for_a_warp;
  constexpr int block_threads = 256;
  constexpr int warp_threads = 128;
  plan.grid = plan.whole_block
                  ? grid_for(launcher, elements.rows, 1, block_threads)
                  : grid_for(launcher, elements.rows, warp_threads / simt::warp_size, warp_threads);
  return plan;
}

template <typename T, typename L>
void launch_forward(L& launcher, const NormPlan& plan, const NormForwardOperands<T>& operands) {
  constexpr const char* name = "norm_forward";
  constexpr int pack = pack_size<T>;
  if (plan.narrow) {
    launcher.launch(name, &norm_forward_rows<T, 1, double, false>, plan.grid, operands);
  } else if (plan.whole_block && plan.packed) {
    launcher.launch(name, &norm_forward_rows<T, pack, float, true>, plan.grid, operands);
  } else if (plan.whole_block) {
    launcher.launch(name, &norm_forward_rows<T, 1, float, true>, plan.grid, operands);
  } else if (plan.packed) {
    launcher.launch(name, &norm_forward_rows<T, pack, float, false>, plan.grid, operands);
  } else {
    launcher.launch(name, &norm_forward_rows<T, 1, float, false>, plan.grid, operands);
  }
}

template <typename T, typename L>
void launch_backward(L& launcher, const NormPlan& plan, const NormBackwardOperands<T>& operands) {
  constexpr const char* name = "norm_backward";
  constexpr int pack = pack_size<T>;
  if (plan.narrow) {
    launcher.launch(name, &norm_backward_rows<T, 1, double, false>, plan.grid, operands);
  } else if (plan.whole_block && plan.packed) {
    launcher.launch(name, &norm_backward_rows<T, pack, float, true>, plan.grid, operands);
  } else if (plan.whole_block) {
    launcher.launch(name, &norm_backward_rows<T, 1, float, true>, plan.grid, operands);
  } else if (plan.packed) {
    launcher.launch(name, &norm_backward_rows<T, pack, float, false>, plan.grid, operands);
  } else {
    launcher.launch(name, &norm_backward_rows<T, 1, float, false>, plan.grid, operands);
  }
}

inline void expect_vector(const Tensor& vector, std::int64_t length, const char* what) {
  TRIREME_EXPECT(vector.contiguous() && vector.element_count() == length,
                 "norm: " + std::string(what) + " " + vector.text());
}

template <typename L>
void norm_forward(L& launcher, const NormForward& norm) {
  const Rows rows(norm.x);
  expect_same_shape(norm.x, norm.y);
  expect_vector(norm.weight, rows.width(), "weight");
  if (norm.residual) {
    TRIREME_EXPECT(norm.sum, "norm: a residual needs a place for the sum");
    expect_same_shape(norm.x, norm.residual);
    expect_same_shape(norm.x, norm.sum);
  }
  if (norm.bias) expect_vector(norm.bias, rows.width(), "bias");
  if (norm.mean) expect_vector(norm.mean, rows.count(), "mean");
  if (norm.rstd) expect_vector(norm.rstd, rows.count(), "rstd");
  if (rows.count() == 0) return;
  with_type(norm.x.dtype(), [&](auto element) {
    using T = decltype(element);
    const Tensor no_sum;
    const Tensor& sum = norm.residual ? norm.sum : no_sum;
    const bool packed =
        all_packable(pack_size<T>, norm.x, norm.residual, sum, norm.y, norm.weight, norm.bias);
    const auto plan = plan_norm(launcher, {rows.count(), rows.width(), packed}, pack_size<T>);
    launch_forward<T>(launcher, plan,
                      {matrix_of<const T>(launcher, norm.x),
                       matrix_of<const T>(launcher, norm.residual), matrix_of<T>(launcher, sum),
                       matrix_of<const T>(launcher, norm.residual ? norm.sum : norm.x),
                       memory_of<const T>(launcher, norm.weight),
                       memory_of<const T>(launcher, norm.bias), matrix_of<T>(launcher, norm.y),
                       memory_of<float>(launcher, norm.mean), memory_of<float>(launcher, norm.rstd),
                       rows.count(), rows.width(), norm.eps, norm.kind == NormKind::layer});
  });
}

template <typename L>
void norm_backward(L& launcher, const NormBackward& norm) {
  const Rows rows(norm.dy);
  const bool layer = norm.kind == NormKind::layer;
  expect_same_shape(norm.dy, norm.x);
  expect_same_shape(norm.dy, norm.dx);
  if (norm.d_residual) expect_same_shape(norm.dy, norm.d_residual);
  expect_vector(norm.weight, rows.width(), "weight");
  expect_vector(norm.rstd, rows.count(), "rstd");
  if (layer) expect_vector(norm.mean, rows.count(), "mean");
  if (rows.count() == 0) return;
  with_type(norm.dy.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto dy = matrix_of<const T>(launcher, norm.dy);
    const auto x = matrix_of<const T>(launcher, norm.x);
    const auto mean = memory_of<const float>(launcher, layer ? norm.mean : Tensor());
    const auto rstd = memory_of<const float>(launcher, norm.rstd);
    const bool readable = all_packable(pack_size<T>, norm.dy, norm.x);
    const bool packed =
        readable && all_packable(pack_size<T>, norm.weight, norm.d_residual, norm.dx);
    // Before dx is written: it may lie where dy does.
    add_columns<pack_size<T>>(launcher, "norm_columns", NormColumns<T>{dy, x, mean, rstd},
                              {rows.count(), rows.width(), readable}, {norm.d_weight, norm.d_bias});
    launch_backward<T>(
        launcher, plan_norm(launcher, {rows.count(), rows.width(), packed}, pack_size<T>),
        {dy, x, memory_of<const T>(launcher, norm.weight), mean, rstd,
         matrix_of<const T>(launcher, norm.d_residual), matrix_of<T>(launcher, norm.dx),
         rows.count(), rows.width(), norm.eps, layer});
  });
}

}  // namespace trireme::device::cuda
