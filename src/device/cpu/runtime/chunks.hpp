// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/runtime/context.hpp"
#include "device/cpu/runtime/parallel.hpp"
#include "device/cpu/simd/tables.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::device::cpu {

/// Chunks of the rows of a column sum: cut by their number alone, never by the threads at hand, so
/// that any number of threads gives the same bits.
struct RowChunks {
  static constexpr std::int64_t most_chunks = 64;
  static constexpr std::int64_t fewest_rows = 32;

  explicit RowChunks(std::int64_t rows)
      : row_count(rows),
        chunk_rows(std::max(fewest_rows, (rows + most_chunks - 1) / most_chunks)),
        chunk_count((rows + chunk_rows - 1) / chunk_rows) {}

  Range rows_of(std::int64_t chunk) const {
    return {chunk * chunk_rows, std::min(row_count, (chunk + 1) * chunk_rows)};
  }

  std::int64_t row_count;
  std::int64_t chunk_rows;
  std::int64_t chunk_count;
};

/// Sums of columns by chunk: body(rows, partial) adds its rows into partial [width], which starts
/// at zero; then the partials are added in pairs, pairs of pairs and so on. Returns the total
/// [width], good until the context is used again; null without rows.
template <typename Body>
const float* sum_columns(Context& context, const RowChunks& chunks, std::int64_t width,
                         const Body& body) {
  float* partials = context.partial_sums(chunks.chunk_count * width);
  parallel_for(*context.team, chunks.chunk_count, 1, [&](Range range) {
    for (auto chunk = range.begin; chunk < range.end; ++chunk) {
      float* partial = partials + chunk * width;
      std::fill(partial, partial + width, 0.0F);
      body(chunks.rows_of(chunk), partial);
    }
  });
  const auto& arithmetic = tables_of(context.isa).arithmetic.f32;
  constexpr std::int64_t columns_per_thread = 256;
  parallel_for(*context.team, width, columns_per_thread, [&](Range columns) {
    for (std::int64_t step = 1; step < chunks.chunk_count; step *= 2) {
      for (std::int64_t chunk = 0; chunk + step < chunks.chunk_count; chunk += 2 * step) {
        float* to = partials + chunk * width + columns.begin;
        arithmetic.accumulate(to + step * width, to, columns.count());
      }
    }
  });
  return chunks.chunk_count == 0 ? nullptr : partials;
}

}  // namespace trireme::device::cpu
