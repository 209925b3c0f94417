// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/gemm/matrix_gemm.hpp"

#include "device/cpu/kernels/transpose.hpp"
#include "device/cpu/runtime/parallel.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/elements.hpp"

#include <algorithm>
#include <atomic>

namespace trireme::device::cpu {
namespace {

/// Division of a side into equal tiles, at multiples of `grain`, none longer than `most`.
struct Side {
  Side(std::int64_t all, std::int64_t most) : length(all) {
    constexpr std::int64_t grain = 32;
    const auto parts = std::max<std::int64_t>(1, (all + most - 1) / most);
    tile = std::max<std::int64_t>(1, ((all + parts - 1) / parts + grain - 1) / grain * grain);
    tile = std::min(tile, std::max<std::int64_t>(all, 1));
    count = (all + tile - 1) / tile;
  }
  std::int64_t begin(std::int64_t index) const { return index * tile; }
  std::int64_t size(std::int64_t index) const { return std::min(tile, length - begin(index)); }

  std::int64_t length;
  std::int64_t tile = 1;
  std::int64_t count = 0;
};

/// Rows of a tile: small enough that threads share a matrix of 512 rows.
constexpr std::int64_t most_rows = 256;
/// Columns of a tile of a symmetric result's lower triangle. Narrow ones compute little above the
/// diagonal, and what oneDNN packs for a tile is its columns' operand.
constexpr std::int64_t triangle_columns = 64;
// The first tile of each column of tiles holds the diagonal's square whole.
static_assert(most_rows >= 2 * triangle_columns);

/// Where the elements of matrix `index` of a batch begin.
template <typename T>
T* matrix_at(const Tensor& batch, std::int64_t index) {
  return data_of<T>(batch) + index * batch.dim(1) * batch.dim(2);
}

/// y = scale * sums + added_scale * added on a tile; of one triangle also its mirror image.
template <typename T, typename Tile>
void finish_symmetric(const ArithmeticFunctions<T>& arithmetic, const SymmetricProduct& product,
                      const Tile& tile, const float* sums) {
  const auto& [matrix, row, column, rows, columns] = tile;
  const auto n = product.y.dim(1);
  auto* const y = matrix_at<T>(product.y, matrix);
  const bool mirrors = product.triangles == Triangles::lower;
  const T* const added = product.added ? matrix_at<T>(product.added, matrix) : nullptr;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto at = (row + r) * n + column;
    // Numbers of a diagonal tile above the diagonal do not count.
    const auto count = mirrors ? std::min(columns, row + r + 1 - column) : columns;
    const auto* const line = sums + r * columns;
    if (added == nullptr) {
      arithmetic.scale(line, product.scale, y + at, count);
    } else {
      arithmetic.scale_and_add(line, product.scale, added + at, product.added_scale, y + at, count);
    }
  }
  if (!mirrors) return;
  const auto mirror = [&](std::int64_t first, std::int64_t count, std::int64_t before) {
    transpose(y + first * n + column, n, count, before, y + column * n + first, n);
  };
  // Parts of the diagonal's square: what lies before small squares on it, and the triangles in
  // these.
  constexpr std::int64_t step = 16;
  const auto square = row == column ? std::min(rows, columns) : 0;
  for (std::int64_t begin = 0; begin < square; begin += step) {
    const auto end = std::min(square, begin + step);
    mirror(row + begin, end - begin, begin);
    for (auto r = begin + 1; r < end; ++r) {
      for (auto c = begin; c < r; ++c) y[(row + c) * n + row + r] = y[(row + r) * n + row + c];
    }
  }
  mirror(row + square, rows - square, columns);
}

}  // namespace

MatrixGemm::MatrixGemm(std::shared_ptr<Team> team, Isa isa)
    : team_(std::move(team)), arithmetic_(tables_of(isa).arithmetic) {
  for (int thread = 0; thread < team_->size(); ++thread) {
    threads_.push_back({BlockGemm(bf16_gemm_of(isa)), {}});
  }
}

void MatrixGemm::run(const SymmetricProduct& product) {
  const auto& [x, added, y, scale, added_scale, triangles, by] = product;
  const auto n = x.dim(1);
  const auto m = x.dim(2);
  const bool lower = triangles == Triangles::lower;
  const Side columns(n, lower ? triangle_columns : most_rows);
  std::vector<Tile> tiles;
  for (std::int64_t matrix = 0; matrix < x.dim(0); ++matrix) {
    for (std::int64_t j = 0; j < columns.count; ++j) {
      const auto first = lower ? columns.begin(j) : 0;
      const Side rows(n - first, most_rows);
      for (std::int64_t i = 0; i < rows.count; ++i) {
        tiles.push_back(
            {matrix, first + rows.begin(i), columns.begin(j), rows.size(i), columns.size(j)});
      }
    }
  }
  BlockDescriptor shape{.inner = m, .a_stride = m, .b_stride = m, .in = x.dtype()};
  shape.b_transposed = true;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    multiply(
        shape, tiles,
        [&](const Tile& tile) {
          const auto& right = product.by ? product.by : product.x;
          return BlockOperands{matrix_at<T>(product.x, tile.matrix) + tile.row * m,
                               matrix_at<T>(right, tile.matrix) + tile.column * m};
        },
        [&](const Tile& tile, const float* sums) {
          finish_symmetric<T>(arithmetic_.of(T{}), product, tile, sums);
        });
  });
}

void MatrixGemm::run(const AddProduct& product) {
  const auto& [s, x, z, scale] = product;
  const auto n = x.dim(1);
  const auto m = x.dim(2);
  constexpr std::int64_t most_columns = 512;
  const Side rows(n, most_rows);
  const Side columns(m, most_columns);
  std::vector<Tile> tiles;
  for (std::int64_t matrix = 0; matrix < x.dim(0); ++matrix) {
    for (std::int64_t j = 0; j < columns.count; ++j) {
      for (std::int64_t i = 0; i < rows.count; ++i) {
        tiles.push_back({matrix, rows.begin(i), columns.begin(j), rows.size(i), columns.size(j)});
      }
    }
  }
  const BlockDescriptor shape{.inner = n, .a_stride = n, .b_stride = m, .in = x.dtype()};
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    multiply(
        shape, tiles,
        [&](const Tile& tile) {
          return BlockOperands{matrix_at<T>(product.s, tile.matrix) + tile.row * n,
                               matrix_at<T>(product.x, tile.matrix) + tile.column};
        },
        [&](const Tile& tile, const float* sums) {
          const auto first = tile.row * m + tile.column;
          const auto* const from = matrix_at<T>(product.x, tile.matrix) + first;
          auto* const to = matrix_at<T>(product.z, tile.matrix) + first;
          for (std::int64_t r = 0; r < tile.rows; ++r) {
            arithmetic_.of(T{}).scale_and_add(sums + r * tile.columns, 1.0F, from + r * m,
                                              product.scale, to + r * m, tile.columns);
          }
        });
  });
}

void MatrixGemm::multiply(const BlockDescriptor& shape, const std::vector<Tile>& tiles,
                          const OperandsOf& operands_of, const Finish& finish) {
  if (tiles.empty() || shape.inner == 0) return;
  const auto descriptor_of = [&shape](const Tile& tile) {
    auto descriptor = shape;
    descriptor.rows = tile.rows;
    descriptor.columns = descriptor.c_stride = tile.columns;
    return descriptor;
  };
  const auto threads = std::min(threads_.size(), tiles.size());
  std::size_t largest = 0;
  for (const auto& tile : tiles) {
    largest = std::max(largest, static_cast<std::size_t>(tile.rows * tile.columns));
  }
  // Compiling and allocating may fail, so they happen here and not where threads cannot throw.
  for (std::size_t index = 0; index < threads; ++index) {
    auto& thread = threads_[index];
    thread.gemm.trim();
    for (const auto& tile : tiles) {
      if (tile.matrix > 0) break;
      thread.gemm.prepare(descriptor_of(tile));
    }
    if (thread.tile.size() < largest) thread.tile.resize(largest);
  }
  std::atomic<std::size_t> next{0};
  parallel(*team_, static_cast<int>(threads), [&](int index) {
    const SerialScope serial;
    auto& thread = threads_[static_cast<std::size_t>(index)];
    for (auto number = next++; number < tiles.size(); number = next++) {
      const auto& tile = tiles[number];
      auto operands = operands_of(tile);
      operands.c = thread.tile.data();
      thread.gemm.run(descriptor_of(tile), operands);
      finish(tile, thread.tile.data());
    }
  });
}

}  // namespace trireme::device::cpu
