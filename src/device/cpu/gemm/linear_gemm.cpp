// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/gemm/linear_gemm.hpp"

#include "device/cpu/runtime/parallel.hpp"
#include "device/rows.hpp"

#include <algorithm>
#include <atomic>

namespace trireme::device::cpu {
namespace {

std::int64_t ceiling(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit;
}

/// A matrix [rows, columns] with evenly spaced rows.
struct MatrixView {
  explicit MatrixView(const Tensor& tensor) : data(tensor.raw()), dtype(tensor.dtype()) {
    const Rows lines(tensor);
    rows = lines.count();
    columns = lines.width();
    // A single row has no neighbour: any stride is right, and oneDNN requires one that fits.
    stride = rows == 1 ? columns : lines.stride();
  }

  void* data;
  DType dtype;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
};

/// Tiles of a result. Every tile packs its operands anew, so large ones are best; a multiple of the
/// threads (`together`) keeps all busy. Whole rows multiply faster than pieces of them: rows are
/// cut first, as long as a tile keeps enough. The sizes come from measurements on Zen 4, where
/// these tiles reach 90 to 95 % of the peak (docs/performance.md).
struct Tiles {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_count = 1;
  std::int64_t column_count = 1;
  std::int64_t count() const { return row_count * column_count; }
};

/// Divisor that the number of tiles should have.
std::int64_t tiles_together(int threads, Tiling tiling) {
  if (tiling == Tiling::by_shape) return 4;  // suits two threads, four, and more
  // Few threads get two tiles each, so that a delayed one leaves work to the others.
  constexpr int few = 4;
  return threads > 1 && threads < few ? 2 * threads : threads;
}

Tiles tiles_of(const BlockDescriptor& whole, std::int64_t together) {
  // The rows of a transposed operand lie apart: longer pieces of them are worth more.
  const std::int64_t most_rows = whole.a_transposed ? 1024 : 512;
  // oneDNN is 3 % slower where rows of the result lie apart; threads that share a cache are better
  // off with narrow tiles.
  const std::int64_t most_columns = together == 1 ? 4096 : 768;
  constexpr std::int64_t enough_rows = 128;
  constexpr std::int64_t row_grain = 32;
  constexpr std::int64_t column_grain = 64;
  /// Number of tiles from which on the wait for the last ones of a GEMM costs little.
  const auto plenty = 4 * together;
  /// Least work of a tile: about 10 us.
  constexpr std::int64_t least_operations = 2'000'000;

  Tiles tiles;
  tiles.row_count = ceiling(whole.rows, most_rows);
  tiles.column_count = ceiling(whole.columns, most_columns);
  const auto operations = 2 * whole.rows * whole.columns * whole.inner;
  const auto affordable = std::max<std::int64_t>(1, operations / least_operations);
  while (tiles.count() < std::min(plenty, affordable) && tiles.count() % together != 0) {
    const bool can_cut_rows = whole.rows > tiles.row_count * row_grain;
    const bool can_cut_columns = whole.columns > tiles.column_count * column_grain;
    if (!can_cut_rows && !can_cut_columns) break;
    const bool rows_are_longer = whole.rows / tiles.row_count >= whole.columns / tiles.column_count;
    const bool prefers_rows = rows_are_longer || whole.rows >= enough_rows * (tiles.row_count + 1);
    auto& cut =
        can_cut_rows && (prefers_rows || !can_cut_columns) ? tiles.row_count : tiles.column_count;
    ++cut;
  }
  const auto length = [](std::int64_t total, std::int64_t count, std::int64_t grain) {
    return std::min(total, ceiling(ceiling(total, count), grain) * grain);
  };
  tiles.rows = length(whole.rows, tiles.row_count, row_grain);
  tiles.columns = length(whole.columns, tiles.column_count, column_grain);
  tiles.row_count = ceiling(whole.rows, tiles.rows);
  tiles.column_count = ceiling(whole.columns, tiles.columns);
  return tiles;
}

/// The descriptor of a tile with fewer rows or columns at the lower and right edges.
BlockDescriptor tile_descriptor(const BlockDescriptor& whole, const Tiles& tiles, bool last_row,
                                bool last_column) {
  BlockDescriptor descriptor = whole;
  descriptor.rows = last_row ? whole.rows - (tiles.row_count - 1) * tiles.rows : tiles.rows;
  descriptor.columns =
      last_column ? whole.columns - (tiles.column_count - 1) * tiles.columns : tiles.columns;
  return descriptor;
}

const void* advanced(const void* data, std::int64_t elements, DType dtype) {
  return static_cast<const std::byte*>(data) + elements * static_cast<std::int64_t>(size_of(dtype));
}

BlockOperands tile_operands(const BlockDescriptor& whole, const BlockOperands& operands,
                            std::int64_t row, std::int64_t column) {
  BlockOperands tile;
  tile.a = advanced(operands.a, whole.a_transposed ? row : row * whole.a_stride, whole.in);
  tile.b = advanced(operands.b, whole.b_transposed ? column * whole.b_stride : column, whole.in);
  tile.c = static_cast<std::byte*>(operands.c) +
           (row * whole.c_stride + column) * static_cast<std::int64_t>(size_of(whole.out));
  if (whole.with_bias) tile.bias = advanced(operands.bias, column, whole.in);
  return tile;
}

}  // namespace

LinearGemm::LinearGemm(std::shared_ptr<Team> team, Bf16Gemm bf16, Tiling tiling)
    : team_(std::move(team)), together_(tiles_together(team_->size(), tiling)) {
  for (int thread = 0; thread < team_->size(); ++thread) threads_.emplace_back(bf16);
}

void LinearGemm::linear_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                                const Tensor& y) {
  const MatrixView a(x), b(w), c(y);
  BlockDescriptor descriptor{.rows = a.rows, .columns = b.rows, .inner = a.columns};
  descriptor.a_stride = a.stride;
  descriptor.b_stride = b.stride;
  descriptor.c_stride = c.stride;
  descriptor.in = a.dtype;
  descriptor.out = c.dtype;
  descriptor.b_transposed = true;
  descriptor.with_bias = static_cast<bool>(bias);
  multiply(descriptor, {a.data, b.data, c.data, bias.raw()});
}

void LinearGemm::linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  const MatrixView a(dy), b(w), c(dx);
  BlockDescriptor descriptor{.rows = a.rows, .columns = b.columns, .inner = a.columns};
  descriptor.a_stride = a.stride;
  descriptor.b_stride = b.stride;
  descriptor.c_stride = c.stride;
  descriptor.in = a.dtype;
  descriptor.out = c.dtype;
  multiply(descriptor, {a.data, b.data, c.data, nullptr});
}

void LinearGemm::linear_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  const MatrixView a(dy), b(x), c(dw);
  BlockDescriptor descriptor{.rows = a.columns, .columns = b.columns, .inner = a.rows};
  descriptor.a_stride = a.stride;
  descriptor.b_stride = b.stride;
  descriptor.c_stride = c.stride;
  descriptor.in = a.dtype;
  descriptor.a_transposed = true;
  descriptor.accumulate = true;
  multiply(descriptor, {a.data, b.data, c.data, nullptr});
}

void LinearGemm::multiply(const BlockDescriptor& whole, const BlockOperands& operands) {
  if (whole.rows == 0 || whole.columns == 0 || (whole.inner == 0 && whole.accumulate)) return;
  TRIREME_EXPECT(whole.inner > 0, "a product over nothing");
  const auto tiles = tiles_of(whole, together_);
  const auto threads =
      static_cast<std::size_t>(std::min(tiles.count(), static_cast<std::int64_t>(threads_.size())));
  // Compiling may fail, so it happens here and not where threads cannot throw.
  for (std::size_t thread = 0; thread < threads; ++thread) {
    threads_[thread].trim();
    for (const bool last_row : {false, true}) {
      for (const bool last_column : {false, true}) {
        threads_[thread].prepare(tile_descriptor(whole, tiles, last_row, last_column));
      }
    }
  }
  std::atomic<std::int64_t> next{0};
  parallel(*team_, static_cast<int>(threads), [&](int thread) {
    const SerialScope serial;
    auto& gemm = threads_[static_cast<std::size_t>(thread)];
    for (auto tile = next++; tile < tiles.count(); tile = next++) {
      const auto row = tile % tiles.row_count;
      const auto column = tile / tiles.row_count;
      gemm.run(tile_descriptor(whole, tiles, row + 1 == tiles.row_count,
                               column + 1 == tiles.column_count),
               tile_operands(whole, operands, row * tiles.rows, column * tiles.columns));
    }
  });
}

std::size_t LinearGemm::workspace_bytes() const {
  std::size_t total = 0;
  for (const auto& thread : threads_) total += thread.workspace_bytes();
  return total;
}

}  // namespace trireme::device::cpu
