// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"
#include "device/matrix_rows.hpp"

#include <bit>

namespace trireme::device::cuda {

/// Elements of one block's part of a matrix, whatever the GPU.
constexpr std::int64_t matrix_chunk = 16384;

/// Part of a batch that a block works on: chunk `block % chunks` of matrix `block / chunks`.
struct MatrixChunk {
  std::int64_t matrix;
  std::int64_t begin;
  std::int64_t end;
};
__device__ inline MatrixChunk chunk_of_block(std::int64_t size, std::int64_t chunks) {
  const auto place = divide(simt::block(), chunks);
  const auto begin = place.rest * matrix_chunk;
  const auto first = place.whole * size;
  const auto end = begin + matrix_chunk < size ? begin + matrix_chunk : size;
  return {place.whole, first + begin, first + end};
}

/// partials[block] = sum of the squares of the block's chunk.
__global__ inline void __launch_bounds__(256)
    square_chunks(simt::Global<const float> x, std::int64_t size, std::int64_t chunks,
                  simt::Global<double> partials) {
  const auto chunk = chunk_of_block(size, chunks);
  double total[1] = {0.0};
  for (auto i = chunk.begin + simt::thread(); i < chunk.end; i += simt::threads()) {
    const auto value = static_cast<double>(x.load(i));
    total[0] += value * value;
  }
  block_sums(total);
  if (simt::thread() == 0) partials.store(simt::block(), total[0]);
}

/// Divides the block's chunk by the norm of its matrix, whose partial sums every block adds in one
/// order.
template <typename T>
__global__ void __launch_bounds__(256)
    divide_chunks(simt::Global<const float> x, std::int64_t size, std::int64_t chunks,
                  simt::Global<const double> partials, float eps, simt::Global<T> y) {
  const auto chunk = chunk_of_block(size, chunks);
  double total[1] = {0.0};
  for (std::int64_t i = simt::thread(); i < chunks; i += simt::threads()) {
    total[0] += partials.load(chunk.matrix * chunks + i);
  }
  block_sums(total);
  const float norm = static_cast<float>(sqrt(total[0])) + eps;
  for (auto i = chunk.begin + simt::thread(); i < chunk.end; i += simt::threads()) {
    auto value = load_floats<1>(x, i);
    value[0] /= norm;
    store_floats<1>(y, i, value);
  }
}

template <typename L>
void run(L& launcher, const NormaliseMatrices& operation) {
  const auto& [x, y, eps] = operation;
  if (x.element_count() == 0) return;
  const auto size = x.dim(1) * x.dim(2);
  const auto chunks = ceil_div(size, matrix_chunk);
  const Grid grid{x.dim(0) * chunks, 256};
  const auto from = memory_of<const float>(launcher, x);
  const auto partials = launcher.template workspace<double>(grid.blocks);
  launcher.launch("square_chunks", &square_chunks, grid, from, size, chunks, partials);
  with_type(y.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch("divide_chunks", &divide_chunks<T>, grid, from, size, chunks, partials, eps,
                    memory_of<T>(launcher, y));
  });
}

/// norms[matrix] = root of the sum of the matrix's partial sums; a block for each.
__global__ inline void __launch_bounds__(256)
    root_partials(simt::Global<const double> partials, std::int64_t chunks,
                  simt::Global<float> norms) {
  double total[1] = {0.0};
  for (std::int64_t i = simt::thread(); i < chunks; i += simt::threads()) {
    total[0] += partials.load(simt::block() * chunks + i);
  }
  block_sums(total);
  if (simt::thread() == 0) norms.store(simt::block(), static_cast<float>(sqrt(total[0])));
}

template <typename L>
void run(L& launcher, const MatrixNorms& operation) {
  const auto& [x, norms] = operation;
  if (x.element_count() == 0) return;
  const auto size = x.dim(1) * x.dim(2);
  const auto chunks = ceil_div(size, matrix_chunk);
  const Grid grid{x.dim(0) * chunks, 256};
  const auto partials = launcher.template workspace<double>(grid.blocks);
  launcher.launch("square_chunks", &square_chunks, grid, memory_of<const float>(launcher, x), size,
                  chunks, partials);
  launcher.launch("root_partials", &root_partials, Grid{x.dim(0), 256}, partials, chunks,
                  memory_of<float>(launcher, norms));
}

struct ScaleBody {
  simt::Global<const float> x;
  simt::Global<const float> factors;
  simt::Global<float> y;
  std::int64_t columns = 0;

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto factor = factors.load(row);
    auto values = load_floats<N>(x.from(row * columns), column);
    for (int i = 0; i < N; ++i) values[i] *= factor;
    store_floats<N>(y.from(row * columns), column, values);
  }
};

template <typename L>
void run(L& launcher, const ScaleRows& operation) {
  const auto& [x, factors, y] = operation;
  constexpr int pack = pack_size<float>;
  run_elements<pack>(
      launcher, "scale_rows", Elements{x.dim(0), x.dim(1), all_packable(pack, x, y)},
      ScaleBody{memory_of<const float>(launcher, x), memory_of<const float>(launcher, factors),
                memory_of<float>(launcher, y), x.dim(1)});
}

/// Blocks take rows in turns.
__global__ inline void __launch_bounds__(256)
    row_products(simt::Global<const float> x, simt::Global<const float> y, std::int64_t rows,
                 std::int64_t columns, simt::Global<std::int32_t> sums) {
  for (auto row = simt::block(); row < rows; row += simt::blocks()) {
    double total[1] = {0.0};
    for (std::int64_t i = simt::thread(); i < columns; i += simt::threads()) {
      const auto at = row * columns + i;
      total[0] += static_cast<double>(x.load(at) * y.load(at));
    }
    block_sums(total);
    if (simt::thread() != 0) continue;
    const auto bits = std::bit_cast<std::uint64_t>(total[0]);
    sums.store(2 * row, static_cast<std::int32_t>(bits));
    sums.store(2 * row + 1, static_cast<std::int32_t>(bits >> 32U));
  }
}

template <typename L>
void run(L& launcher, const RowProducts& operation) {
  const auto& [x, y, sums] = operation;
  if (x.dim(0) == 0) return;
  launcher.launch("row_products", &row_products, grid_for(launcher, x.dim(0), 1, 256),
                  memory_of<const float>(launcher, x), memory_of<const float>(launcher, y),
                  x.dim(0), x.dim(1), simt::Global<std::int32_t>(sums.i32()));
}

/// Element `column` of row `row` of the results, which is in that column of x. Reads lie apart: a
/// matrix is transposed twice an update, beside ten products or more.
template <typename T>
struct TransposeBody {
  simt::Global<const T> x;
  simt::Global<T> y;
  std::int64_t rows = 0;     // of x
  std::int64_t columns = 0;  // of x

  template <int N>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    const auto place = divide(row, columns);
    const auto from = (place.whole * rows + column) * columns + place.rest;
    store_floats<1>(y, row * rows + column, load_floats<1>(x, from));
  }
};

template <typename L>
void run(L& launcher, const TransposeMatrices& operation) {
  const auto& [x, y] = operation;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    run_elements<1>(launcher, "transpose_matrices", Elements{x.dim(0) * x.dim(2), x.dim(1), false},
                    TransposeBody<T>{memory_of<const T>(launcher, x), memory_of<T>(launcher, y),
                                     x.dim(1), x.dim(2)});
  });
}

/// Side of the tiles that a block mirrors through shared memory.
constexpr int mirror_side = simt::warp_size;

/// Each block takes tiles of the lower triangle, diagonal ones among them, and writes the mirror
/// image of each, both along rows. Rows of a tile in shared memory are one element longer, so that
/// its columns lie in different banks.
template <typename T>
__global__ void __launch_bounds__(256)
    mirror_triangle(simt::Global<T> y, std::int64_t n, std::int64_t tiles, std::int64_t all) {
  constexpr int pitch = mirror_side + 1;
  __shared__ simt::Shared<T, mirror_side * pitch> tile;
  const int step = simt::threads() / simt::warp_size;
  for (auto index = simt::block(); index < all; index += simt::blocks()) {
    const auto matrix = divide(index, tiles * tiles);
    const auto place = divide(matrix.rest, tiles);
    if (place.rest > place.whole) continue;
    const auto row = place.whole * mirror_side;
    const auto column = place.rest * mirror_side;
    const auto first = matrix.whole * n * n;
    for (int r = simt::warp(); r < mirror_side; r += step) {
      if (row + r >= n || column + simt::lane() >= row + r) continue;
      tile.store(r * pitch + simt::lane(), y.load(first + (row + r) * n + column + simt::lane()));
    }
    simt::sync();
    for (int r = simt::warp(); r < mirror_side; r += step) {
      const auto to = row + simt::lane();
      if (to >= n || column + r >= to) continue;
      y.store(first + (column + r) * n + to, tile.load(simt::lane() * pitch + r));
    }
    simt::sync();
  }
}

template <typename L>
void run(L& launcher, const MirrorTriangle& operation) {
  const auto& y = operation.y;
  if (y.element_count() == 0) return;
  const auto tiles = ceil_div(y.dim(1), mirror_side);
  const auto all = y.dim(0) * tiles * tiles;
  TRIREME_EXPECT(all <= largest_dividend, "a kernel's matrices have at most 2^32 tiles");
  with_type(y.dtype(), [&](auto element) {
    using T = decltype(element);
    launcher.launch("mirror_triangle", &mirror_triangle<T>, grid_for(launcher, all, 1, 256),
                    memory_of<T>(launcher, y), y.dim(1), tiles, all);
  });
}

}  // namespace trireme::device::cuda
