// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"

#include <algorithm>

namespace trireme::device::cpu {
namespace {

/// A multiple of a cache line, so that no two threads write the same one.
constexpr std::int64_t column_grain = 64;

}  // namespace

template <>
void run(Context& context, const EmbeddingForward& operation) {
  const auto& [tokens, table, first_token, out] = operation;
  const Rows from(table);
  const Rows to(out);
  const auto* ids = tokens.i32();
  with_type(table.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto* rows = data_of<T>(table);
    auto* places = data_of<T>(out);
    parallel_for(*context.team, to.count(), row_grain(to.width()), [&](Range range) {
      for (auto row = range.begin; row < range.end; ++row) {
        const auto local = ids[row] - first_token;
        auto* place = places + to.offset(row);
        if (local < 0 || local >= from.count()) {
          std::fill_n(place, to.width(), T{});
        } else {
          std::copy_n(rows + from.offset(local), to.width(), place);
        }
      }
    });
  });
}

template <>
void run(Context& context, const EmbeddingBackward& operation) {
  const auto& [tokens, d_out, first_token, d_table] = operation;
  const Rows from(d_out);
  const Rows to(d_table);
  const auto* ids = tokens.i32();
  auto* sums = d_table.f32();
  with_type(d_out.dtype(), [&](auto element) {
    const auto* gradients = data_of<decltype(element)>(d_out);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    // Threads share the columns, not the rows: each adds every token in the order of the batch.
    parallel_for(*context.team, to.width(), column_grain, [&](Range columns) {
      for (std::int64_t row = 0; row < from.count(); ++row) {
        const auto local = ids[row] - first_token;
        if (local < 0 || local >= to.count()) continue;
        functions.accumulate(gradients + from.offset(row) + columns.begin,
                             sums + to.offset(local) + columns.begin, columns.count());
      }
    });
  });
}

template <>
void run(Context& context, const AddPositions& operation) {
  const auto& [x, table, seq, first_position] = operation;
  const Rows rows(x);
  const Rows positions(table);
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    auto* places = data_of<T>(x);
    const auto* added = data_of<T>(table);
    parallel_for(*context.team, rows.count(), row_grain(rows.width()), [&](Range range) {
      for (auto row = range.begin; row < range.end; ++row) {
        auto* place = places + rows.offset(row);
        functions.add(place, added + positions.offset(first_position + row % seq), place,
                      rows.width());
      }
    });
  });
}

template <>
void run(Context& context, const AddPositionsBackward& operation) {
  const auto& [dx, seq, d_table] = operation;
  const Rows rows(dx);
  const Rows positions(d_table);
  auto* sums = d_table.f32();
  with_type(dx.dtype(), [&](auto element) {
    const auto* gradients = data_of<decltype(element)>(dx);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    // Each position belongs to one thread, which adds the sequences in order.
    parallel_for(*context.team, seq, row_grain(rows.width()), [&](Range range) {
      for (auto position = range.begin; position < range.end; ++position) {
        for (auto row = position; row < rows.count(); row += seq) {
          functions.accumulate(gradients + rows.offset(row), sums + positions.offset(position),
                               rows.width());
        }
      }
    });
  });
}

}  // namespace trireme::device::cpu
