// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/norm_plan.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"

#include <cmath>

namespace trireme::device::cuda {

template <typename T>
struct NormForwardOperands {
  Matrix<const T> x;
  Matrix<const T> residual;
  Matrix<T> sum;
  /// Rows that are normalised: the sum, or x.
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

/// Forward of rows too narrow or too wide to hold: a team's threads read again what they wrote
/// themselves, from a cache: the variance is that of the differences from the mean, in a pass of
/// its own. `Real` is double for narrow rows, whose gradients are small differences.
template <typename T, int N, typename Real, int lanes>
__global__ void __launch_bounds__(256, 2) norm_forward_streamed(NormForwardOperands<T> norm) {
  using Row = Team<lanes>;
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

/// Work of a thread on its packs of a row.
template <typename T, int N, int lanes, int packs>
class HeldForward {
 public:
  using Row = Team<lanes>;
  using Values = Floats<N>[packs];

  __device__ explicit HeldForward(const NormForwardOperands<T>& norm) : norm_(norm) {}

  __device__ static std::int64_t column(int p) {
    return (std::int64_t{p} * Row::size() + Row::rank()) * N;
  }
  /// x, or x + residual as it is rounded and stored.
  __device__ void read(std::int64_t row, Values& held) const {
    const auto x = norm_.x.row(row);
    for (int p = 0; p < packs; ++p) {
      if (column(p) < norm_.width) held[p] = load_floats<N>(x, column(p));
    }
    if (!norm_.residual.data) return;
    const auto residual = norm_.residual.row(row);
    const auto sum = norm_.sum.row(row);
    for (int p = 0; p < packs; ++p) {
      const auto c = column(p);
      if (c >= norm_.width) continue;
      const auto r = load_floats<N>(residual, c);
      for (int i = 0; i < N; ++i) held[p][i] = simt::widen(simt::narrow<T>(held[p][i] + r[i]));
      store_floats<N>(sum, c, held[p]);
    }
  }
  __device__ float sum(const Values& held) const {
    float total = 0.0F;
    for (int p = 0; p < packs; ++p) {
      if (column(p) >= norm_.width) continue;
      for (int i = 0; i < N; ++i) total += held[p][i];
    }
    return total;
  }
  __device__ float sum_of_squares(const Values& held, float mean) const {
    float total = 0.0F;
    for (int p = 0; p < packs; ++p) {
      if (column(p) >= norm_.width) continue;
      for (int i = 0; i < N; ++i) total += (held[p][i] - mean) * (held[p][i] - mean);
    }
    return total;
  }
  __device__ void store(std::int64_t row, const Values& held, float mean, float rstd) const {
    if (Row::rank() == 0) {
      if (norm_.mean) norm_.mean.store(row, mean);
      if (norm_.rstd) norm_.rstd.store(row, rstd);
    }
    for (int p = 0; p < packs; ++p) {
      const auto c = column(p);
      if (c >= norm_.width) continue;
      auto v = load_floats<N>(norm_.weight, c);
      for (int i = 0; i < N; ++i) v[i] *= (held[p][i] - mean) * rstd;
      if (norm_.bias) {
        const auto b = load_floats<N>(norm_.bias, c);
        for (int i = 0; i < N; ++i) v[i] += b[i];
      }
      store_floats<N>(norm_.y.row(row), c, v);
    }
  }

 private:
  const NormForwardOperands<T>& norm_;
};

/// Rows in registers: x and residual are read once, sum and y written once. The variance is that of
/// the differences from the mean, which without `layer` is known to be 0.
template <typename T, int N, int lanes, int packs, bool layer>
__global__ void __launch_bounds__(most_threads(lanes, packs), least_blocks(packs))
    norm_forward_held(NormForwardOperands<T> norm) {
  using Row = Team<lanes>;
  const HeldForward<T, N, lanes, packs> thread(norm);
  const auto count = static_cast<float>(norm.width);
  // All threads of a block go round together: they meet in sums.
  const auto step = simt::blocks() * Row::in_block();
  for (auto first = simt::block() * Row::in_block(); first < norm.rows; first += step) {
    const auto row = first + Row::number();
    const bool active = row < norm.rows;
    Floats<N> held[packs]{};
    float total[1] = {0.0F};
    float mean = 0.0F;
    if (active) thread.read(row, held);
    if constexpr (layer) {
      total[0] = thread.sum(held);
      Row::sums(total);
      mean = total[0] / count;
    }
    total[0] = thread.sum_of_squares(held, mean);
    Row::sums(total);
    if (!active) continue;
    thread.store(row, held, mean, 1.0F / std::sqrt(total[0] / count + norm.eps));
  }
}

template <typename T, typename L>
void launch_forward(L& launcher, const Elements& elements, const NormForwardOperands<T>& operands) {
  constexpr const char* name = "norm_forward";
  constexpr int pack = pack_size<T>;
  const auto held = [&]<int N>(const HeldRows& plan) {
    if (!plan.possible()) return false;
    with_held_rows<N>(plan, [&](auto lanes, auto packs) {
      launcher.launch(name,
                      operands.layer ? &norm_forward_held<T, N, lanes(), packs(), true>
                                     : &norm_forward_held<T, N, lanes(), packs(), false>,
                      grid_for(launcher, elements.rows, plan.at_once(), plan.threads), operands);
    });
    return true;
  };
  const auto plan = stream_rows(launcher, elements, pack);
  if (plan.narrow) {
    launcher.launch(name, &norm_forward_streamed<T, 1, double, 32>, plan.grid, operands);
  } else if (plan.packed) {
    if (held.template operator()<pack>(hold_rows<pack>(elements.width))) return;
    launcher.launch(name, &norm_forward_streamed<T, pack, float, 0>, plan.grid, operands);
  } else {
    if (held.template operator()<1>(hold_rows<1>(elements.width))) return;
    launcher.launch(name, &norm_forward_streamed<T, 1, float, 0>, plan.grid, operands);
  }
}

}  // namespace trireme::device::cuda
