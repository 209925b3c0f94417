// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/columns.cuh"
#include "device/cuda/kernels/norm_plan.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::device::cuda {

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

/// Statistics that forward kept; those of narrow rows are computed again from the row itself,
/// because there their rounding is as large as the gradient.
template <typename T, typename Real, int lanes>
__device__ RowStatistics<Real> row_statistics(const NormBackwardOperands<T>& norm,
                                              std::int64_t row) {
  using Row = Team<lanes>;
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

/// Backward of streamed rows: with g = dy * weight and h the normalised row,
/// dx = rstd * (g - mean(g) - h * mean(g * h)) + d_residual; RMS norm lacks the first mean.
template <typename T, int N, typename Real, int lanes>
__global__ void __launch_bounds__(256, 2) norm_backward_streamed(NormBackwardOperands<T> norm) {
  using Row = Team<lanes>;
  const auto count = static_cast<Real>(norm.width);
  const auto begin = std::int64_t{Row::rank()} * N;
  const auto step = std::int64_t{Row::size()} * N;
  for (auto row = Row::index(); row < norm.rows; row += Row::count()) {
    const auto [mean, rstd] = row_statistics<T, Real, lanes>(norm, row);
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

/// Terms of a row in the gradients of weight and bias, where rows are streamed: dy and x are read
/// once more for them.
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

/// Values of a row that a thread holds.
template <typename T, int N, int packs>
struct HeldGradient {
  simt::Pack<T, N> dy[packs]{};
  simt::Pack<T, N> x[packs]{};
  float mean = 0.0F;
  float rstd = 0.0F;

  __device__ float normalised(int p, int i) const { return (simt::widen(x[p], i) - mean) * rstd; }
};

/// The rows of a block: `of_block` of them from block() * of_block on, whatever the GPU.
struct BlockRows {
  std::int64_t of_block = 0;
};

/// Work of a thread on its packs of a row. Without `layer` the mean is known to be 0.
template <typename T, int N, int lanes, int packs, bool layer>
class HeldRow {
 public:
  using Row = Team<lanes>;
  using Packs = simt::Pack<T, N>[packs];
  /// Registers do not suffice for all of a wide row: the next is not read ahead, weights come from
  /// the cache, and the residual's gradient when it is added.
  static constexpr bool ahead = lanes > 0 || packs < 4;

  __device__ explicit HeldRow(const NormBackwardOperands<T>& norm) : norm_(norm) {}

  __device__ static std::int64_t column(int p) {
    return (std::int64_t{p} * Row::size() + Row::rank()) * N;
  }
  __device__ void read(std::int64_t row, HeldGradient<T, N, packs>& held) const {
    const auto dy = norm_.dy.row(row);
    const auto x = norm_.x.row(row);
    for (int p = 0; p < packs; ++p) {
      const auto c = column(p);
      if (c >= norm_.width) continue;
      held.dy[p] = dy.template load_pack<N>(c);
      held.x[p] = x.template load_pack<N>(c);
    }
    if constexpr (layer) held.mean = norm_.mean.load(row);
    held.rstd = norm_.rstd.load(row);
  }
  __device__ void read_weight(Packs& weight) const {
    for (int p = 0; p < packs; ++p) {
      if (column(p) < norm_.width) weight[p] = norm_.weight.template load_pack<N>(column(p));
    }
  }
  __device__ void read_direct(std::int64_t row, Packs& direct) const {
    if (!norm_.d_residual.data) return;
    const auto residual = norm_.d_residual.row(row);
    for (int p = 0; p < packs; ++p) {
      if (column(p) < norm_.width) direct[p] = residual.template load_pack<N>(column(p));
    }
  }
  /// Adds to the totals of g and of g times the normalised row, where g is dy * weight.
  __device__ void add(const HeldGradient<T, N, packs>& held, const Packs& weight,
                      float (&totals)[2], Floats<N> (&d_weight)[packs]) const {
    for (int p = 0; p < packs; ++p) {
      if (column(p) >= norm_.width) continue;
      for (int i = 0; i < N; ++i) {
        const float d = simt::widen(held.dy[p], i);
        const float g = d * simt::widen(weight[p], i);
        totals[0] += g;
        totals[1] += g * held.normalised(p, i);
        d_weight[p][i] += d * held.normalised(p, i);
      }
    }
  }
  __device__ void add_bias(const HeldGradient<T, N, packs>& held,
                           Floats<N> (&d_bias)[packs]) const {
    for (int p = 0; p < packs; ++p) {
      if (column(p) >= norm_.width) continue;
      for (int i = 0; i < N; ++i) d_bias[p][i] += simt::widen(held.dy[p], i);
    }
  }
  /// Writes dx of a row from the means of the two totals of add().
  __device__ void store(std::int64_t row, const HeldGradient<T, N, packs>& held,
                        const Packs& weight, const Packs& direct, const float (&means)[2]) const {
    const auto dx = norm_.dx.row(row);
    for (int p = 0; p < packs; ++p) {
      if (column(p) >= norm_.width) continue;
      Floats<N> result;
      for (int i = 0; i < N; ++i) {
        const float g = simt::widen(held.dy[p], i) * simt::widen(weight[p], i);
        result[i] = held.rstd * (g - means[0] - held.normalised(p, i) * means[1]);
      }
      if (norm_.d_residual.data) {
        auto skipped = direct[p];
        if (!ahead) skipped = norm_.d_residual.row(row).template load_pack<N>(column(p));
        for (int i = 0; i < N; ++i) result[i] += simt::widen(skipped, i);
      }
      store_floats<N>(dx, column(p), result);
    }
  }

 private:
  const NormBackwardOperands<T>& norm_;
};

/// Adds the teams' sums of one column in the order of the teams, into partials[column].
template <int N, int lanes, int packs>
__device__ void store_column_sums(const Floats<N> (&sums)[packs], std::int64_t width,
                                  const simt::Global<float>& partials) {
  using Row = Team<lanes>;
  if constexpr (Row::whole_block) {
    for (int p = 0; p < packs; ++p) {
      const auto c = (std::int64_t{p} * Row::size() + Row::rank()) * N;
      if (c < width) store_floats<N>(partials, c, sums[p]);
    }
  } else {
    __shared__ simt::Shared<float, lanes * packs * N> total;
    for (int team = 0; team < Row::in_block(); ++team) {
      simt::sync();
      if (team != Row::number()) continue;
      for (int p = 0; p < packs; ++p) {
        for (int i = 0; i < N; ++i) {
          const int c = (p * Row::size() + Row::rank()) * N + i;
          total.store(c, team == 0 ? sums[p][i] : total.load(c) + sums[p][i]);
        }
      }
    }
    simt::sync();
    for (auto c = std::int64_t{simt::thread()}; c < width; c += simt::threads()) {
      partials.store(c, total.load(static_cast<int>(c)));
    }
    simt::sync();  // the next sums overwrite these
  }
}

/// Backward in one pass: reads dy, x and d_residual once, writes dx once (bf16: 8 bytes an element,
/// 6 without a residual; fp32 twice that). The block's sums over its rows for the gradients of
/// weight and bias stay in registers; partials[block][0 or 1][column] are added by add_partials in
/// the order of the blocks. The next row is read while this one is summed.
template <typename T, int N, int lanes, int packs, bool layer>
__global__ void __launch_bounds__(most_threads(lanes, packs), least_blocks(packs))
    norm_backward_held(NormBackwardOperands<T> norm, BlockRows rows, simt::Global<float> partials) {
  using Row = Team<lanes>;
  constexpr bool ahead = HeldRow<T, N, lanes, packs, layer>::ahead;
  constexpr int sums_count = layer ? 2 : 1;
  const HeldRow<T, N, lanes, packs, layer> thread(norm);
  const auto begin = simt::block() * rows.of_block;
  const auto end = begin + rows.of_block < norm.rows ? begin + rows.of_block : norm.rows;
  const auto count = static_cast<float>(norm.width);
  Floats<N> d_weight[packs]{};
  Floats<N> d_bias[packs]{};
  simt::Pack<T, N> weight[packs]{};
  if (ahead) thread.read_weight(weight);
  HeldGradient<T, N, packs> next;
  if (ahead && begin + Row::number() < end) thread.read(begin + Row::number(), next);
  // All threads of a block go round together: they meet in sums.
  for (auto first = begin; first < end; first += Row::in_block()) {
    const auto row = first + Row::number();
    const bool active = row < end;
    if (!ahead && active) thread.read(row, next);
    const auto held = next;
    if (ahead && row + Row::in_block() < end) thread.read(row + Row::in_block(), next);
    simt::Pack<T, N> direct[packs]{};
    if (ahead && active) thread.read_direct(row, direct);
    if (!ahead) thread.read_weight(weight);
    float totals[2] = {0.0F, 0.0F};
    if (active) thread.add(held, weight, totals, d_weight);
    if (layer && active) thread.add_bias(held, d_bias);
    if constexpr (layer) {
      Row::sums(totals);
    } else {
      float of_products[1] = {totals[1]};
      Row::sums(of_products);
      totals[1] = of_products[0];
    }
    if (!active) continue;
    const float means[2] = {layer ? totals[0] / count : 0.0F, totals[1] / count};
    thread.store(row, held, weight, direct, means);
  }
  const auto own = partials.from(simt::block() * sums_count * norm.width);
  store_column_sums<N, lanes>(d_weight, norm.width, own);
  if constexpr (layer) store_column_sums<N, lanes>(d_bias, norm.width, own.from(norm.width));
}

/// Blocks of a fused backward and the rows of each: by shape alone, so that sums repeat on any
/// GPU. Enough to fill the GPU that this was tuned for (132 multiprocessors), few enough that
/// partial sums are a few percent of what moves.
inline BlockRows rows_of_blocks(const HeldRows& plan, std::int64_t rows) {
  const std::int64_t most = plan.lanes == 0 && plan.packs == 1 ? 396 : 264;
  constexpr std::int64_t fewest_rows = 16;
  const auto at_once = plan.at_once();
  const auto wanted = std::max({ceil_div(rows, most), fewest_rows, at_once});
  return {ceil_div(wanted, at_once) * at_once};
}

/// False if rows of this width cannot be held.
template <typename T, int N, typename L>
bool backward_in_one_pass(L& launcher, const NormBackwardOperands<T>& operands,
                          const Tensor& d_weight, const Tensor& d_bias) {
  const auto plan = hold_rows<N>(operands.width);
  if (!plan.possible()) return false;
  const auto rows = rows_of_blocks(plan, operands.rows);
  const Grid grid{ceil_div(operands.rows, rows.of_block), plan.threads};
  const std::int64_t sums = operands.layer ? 2 : 1;
  auto partials = launcher.template workspace<float>(grid.blocks * sums * operands.width);
  with_held_rows<N>(plan, [&](auto lanes, auto packs) {
    if (operands.layer) {
      launcher.launch("norm_backward", &norm_backward_held<T, N, lanes(), packs(), true>, grid,
                      operands, rows, partials);
    } else {
      launcher.launch("norm_backward", &norm_backward_held<T, N, lanes(), packs(), false>, grid,
                      operands, rows, partials);
    }
  });
  join_partials(launcher, partials, {grid.blocks, sums, operands.width}, d_weight, 0);
  if (operands.layer) {
    join_partials(launcher, partials, {grid.blocks, sums, operands.width}, d_bias, 1);
  }
  return true;
}

template <typename T, typename L>
void backward_streamed(L& launcher, const Elements& elements,
                       const NormBackwardOperands<T>& operands) {
  constexpr const char* name = "norm_backward";
  const auto plan = stream_rows(launcher, elements, pack_size<T>);
  if (plan.narrow) {
    launcher.launch(name, &norm_backward_streamed<T, 1, double, 32>, plan.grid, operands);
  } else if (plan.packed) {
    launcher.launch(name, &norm_backward_streamed<T, pack_size<T>, float, 0>, plan.grid, operands);
  } else {
    launcher.launch(name, &norm_backward_streamed<T, 1, float, 0>, plan.grid, operands);
  }
}

}  // namespace trireme::device::cuda
