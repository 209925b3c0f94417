// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/wide_products.hpp"

namespace trireme::device::cuda {

/// Side of the tile of a result that a block computes, and terms of its sums in shared memory at a
/// time. Each of the 256 threads has a row of sums in every sixteenth row and column: neighbouring
/// threads read neighbouring doubles.
constexpr int wide_side = 64;
constexpr int wide_depth = 16;
constexpr int wide_step = 16;
constexpr int wide_sums = wide_side / wide_step;

/// Results [rows, columns] of sums of `inner` terms, in tiles.
struct WideShape {
  WideShape(std::int64_t its_rows, std::int64_t its_columns, std::int64_t its_inner)
      : rows(its_rows),
        columns(its_columns),
        inner(its_inner),
        across(ceil_div(columns, wide_side)),
        tiles(ceil_div(rows, wide_side) * across) {}

  std::int64_t rows;
  std::int64_t columns;
  std::int64_t inner;
  std::int64_t across;
  std::int64_t tiles;
};

/// body.finish(i, j, sum over k of body.left(k, i) * body.right(k, j)), in fp64, for tiles that the
/// body wants. No library multiplies f32 with such sums.
template <typename Body>
__global__ void __launch_bounds__(256) wide_tiles(Body body, WideShape shape) {
  __shared__ simt::Shared<double, wide_depth * wide_side> left;
  __shared__ simt::Shared<double, wide_depth * wide_side> right;
  const int first_row = simt::thread() / wide_step;
  const int first_column = simt::thread() % wide_step;
  for (auto tile = simt::block(); tile < shape.tiles; tile += simt::blocks()) {
    const auto place = divide(tile, shape.across);
    const auto row = place.whole * wide_side;
    const auto column = place.rest * wide_side;
    if (!body.wants(row, column)) continue;
    double sums[wide_sums][wide_sums]{};
    for (std::int64_t begin = 0; begin < shape.inner; begin += wide_depth) {
      for (int at = simt::thread(); at < wide_depth * wide_side; at += simt::threads()) {
        const auto k = begin + at / wide_side;
        const auto i = row + at % wide_side;
        const auto j = column + at % wide_side;
        left.store(at, k < shape.inner && i < shape.rows ? body.left(k, i) : 0.0);
        right.store(at, k < shape.inner && j < shape.columns ? body.right(k, j) : 0.0);
      }
      simt::sync();
      for (int k = 0; k < wide_depth; ++k) {
        double factors[wide_sums];
        for (int r = 0; r < wide_sums; ++r) {
          factors[r] = left.load(k * wide_side + first_row + r * wide_step);
        }
        for (int c = 0; c < wide_sums; ++c) {
          const auto factor = right.load(k * wide_side + first_column + c * wide_step);
          for (int r = 0; r < wide_sums; ++r) sums[r][c] += factors[r] * factor;
        }
      }
      simt::sync();
    }
    for (int r = 0; r < wide_sums; ++r) {
      for (int c = 0; c < wide_sums; ++c) {
        const auto i = row + first_row + r * wide_step;
        const auto j = column + first_column + c * wide_step;
        if (i < shape.rows && j < shape.columns) body.finish(i, j, sums[r][c]);
      }
    }
  }
}

template <typename T>
__device__ double load_wide(const simt::Global<T>& high, const simt::Global<T>& low,
                            std::int64_t at) {
  return static_cast<double>(high.load(at)) + static_cast<double>(low.load(at));
}

struct RankUpdateBody {
  simt::Global<const float> x;
  simt::Global<float> high;
  simt::Global<float> low;
  std::int64_t n = 0;
  double kept = 0;

  /// The lower triangle.
  __device__ bool wants(std::int64_t row, std::int64_t column) const { return column <= row; }
  __device__ double left(std::int64_t k, std::int64_t i) const { return x.load(k * n + i); }
  __device__ double right(std::int64_t k, std::int64_t j) const { return x.load(k * n + j); }
  __device__ void finish(std::int64_t i, std::int64_t j, double sum) const {
    if (j > i) return;
    const auto value = kept * load_wide(high, low, i * n + j) + (1.0 - kept) * sum;
    const auto near = static_cast<float>(value);
    const auto rest = static_cast<float>(value - static_cast<double>(near));
    for (const auto at : {i * n + j, j * n + i}) {
      high.store(at, near);
      low.store(at, rest);
    }
  }
};

template <typename L>
void run(L& launcher, const SymmetricRankUpdate& operation) {
  const auto& [x, sum, kept] = operation;
  const auto n = x.dim(1);
  if (n == 0) return;
  const WideShape shape{n, n, x.dim(0)};
  launcher.launch(
      "symmetric_rank_update", &wide_tiles<RankUpdateBody>, grid_for(launcher, shape.tiles, 1, 256),
      RankUpdateBody{memory_of<const float>(launcher, x), memory_of<float>(launcher, sum.high),
                     memory_of<float>(launcher, sum.low), n, kept},
      shape);
}

struct WideProductBody {
  simt::Global<const float> x;
  simt::Global<const float> high;
  simt::Global<const float> low;
  simt::Global<float> y;
  std::int64_t inner = 0;
  std::int64_t columns = 0;

  __device__ bool wants(std::int64_t, std::int64_t) const { return true; }
  __device__ double left(std::int64_t k, std::int64_t i) const { return x.load(i * inner + k); }
  __device__ double right(std::int64_t k, std::int64_t j) const {
    return load_wide(high, low, k * columns + j);
  }
  __device__ void finish(std::int64_t i, std::int64_t j, double sum) const {
    y.store(i * columns + j, static_cast<float>(sum));
  }
};

template <typename L>
void run(L& launcher, const WideProduct& operation) {
  const auto& [x, s, y] = operation;
  if (y.element_count() == 0) return;
  const WideShape shape{y.dim(0), y.dim(1), x.dim(1)};
  launcher.launch(
      "wide_product", &wide_tiles<WideProductBody>, grid_for(launcher, shape.tiles, 1, 256),
      WideProductBody{memory_of<const float>(launcher, x), memory_of<const float>(launcher, s.high),
                      memory_of<const float>(launcher, s.low), memory_of<float>(launcher, y),
                      shape.inner, shape.columns},
      shape);
}

}  // namespace trireme::device::cuda
