// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/kernels/arithmetic.hpp"

#include "device/cpu/kernels/run.hpp"
#include "device/cpu/runtime/chunks.hpp"
#include "device/cpu/runtime/runs.hpp"
#include "device/cpu/simd/tables.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <vector>

namespace trireme::device::cpu {
namespace {

/// Bytes of a run of elements moved as they are.
void move_run(const void* from, std::int64_t from_offset, void* to, std::int64_t to_offset,
              std::size_t bytes_per_element, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(bytes_per_element);
  std::memcpy(static_cast<std::byte*>(to) + to_offset * size,
              static_cast<const std::byte*>(from) + from_offset * size,
              static_cast<std::size_t>(count * size));
}

/// Adds neighbours, neighbours of neighbours and so on.
double tree_sum(std::vector<double>& terms) {
  for (std::size_t step = 1; step < terms.size(); step *= 2) {
    for (std::size_t i = 0; i + step < terms.size(); i += 2 * step) terms[i] += terms[i + step];
  }
  return terms.empty() ? 0.0 : terms[0];
}

}  // namespace

template <>
void run(Context& context, const Fill& operation) {
  const auto& [x, value] = operation;
  const auto& arithmetic = tables_of(context.isa).arithmetic;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    for_runs<1>(context, {x}, [&](const auto& offset, std::int64_t count) {
      T* place = data_of<T>(x) + offset[0];
      // Bits of zero; -0 has others.
      if (std::bit_cast<std::uint32_t>(value) == 0) {
        std::memset(static_cast<void*>(place), 0, static_cast<std::size_t>(count) * sizeof(T));
      } else {
        arithmetic.of(element).fill(place, count, value);
      }
    });
  });
}

template <>
void run(Context& context, const Copy& operation) {
  const auto& [from, to] = operation;
  if (from.dtype() == to.dtype()) {
    for_runs<2>(context, {from, to}, [&](const auto& offset, std::int64_t count) {
      move_run(from.raw(), offset[0], to.raw(), offset[1], size_of(from.dtype()), count);
    });
    return;
  }
  const auto& arithmetic = tables_of(context.isa).arithmetic;
  if (from.dtype() == DType::bf16) {
    const auto* source = from.bf16();
    auto* place = to.f32();
    for_runs<2>(context, {from, to}, [&](const auto& offset, std::int64_t count) {
      arithmetic.bf16.to_f32(source + offset[0], place + offset[1], count);
    });
    return;
  }
  const auto* source = from.f32();
  auto* place = to.bf16();
  for_runs<2>(context, {from, to}, [&](const auto& offset, std::int64_t count) {
    arithmetic.f32.to_bf16(source + offset[0], place + offset[1], count);
  });
}

template <>
void run(Context& context, const Add& operation) {
  const auto& [x, y, z] = operation;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    const auto* a = data_of<T>(x);
    const auto* b = data_of<T>(y);
    auto* place = data_of<T>(z);
    for_runs<3>(context, {x, y, z}, [&](const auto& offset, std::int64_t count) {
      functions.add(a + offset[0], b + offset[1], place + offset[2], count);
    });
  });
}

template <>
void run(Context& context, const Accumulate& operation) {
  const auto& [x, sum] = operation;
  with_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    const auto* source = data_of<T>(x);
    auto* place = data_of<float>(sum);
    for_runs<2>(context, {x, sum}, [&](const auto& offset, std::int64_t count) {
      functions.accumulate(source + offset[0], place + offset[1], count);
    });
  });
}

template <>
void run(Context& context, const HashBits& operation) {
  const auto& [x, hash] = operation;
  const Rows rows = x.contiguous() ? Rows(x.flat()) : Rows(x);
  // Cuts inside rows, too: most tensors are one row here.
  constexpr std::int64_t chunk = 16384;
  const auto chunks_per_row = (rows.width() + chunk - 1) / chunk;
  std::atomic<std::uint64_t> total{0};
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    parallel_for(*context.team, rows.count() * chunks_per_row, 1, [&](Range range) {
      std::uint64_t part = 0;
      for (auto index = range.begin; index < range.end; ++index) {
        const auto row = index / chunks_per_row;
        const auto begin = index % chunks_per_row * chunk;
        const auto end = std::min(begin + chunk, rows.width());
        const auto* from = numbers + rows.offset(row);
        const auto first = row * rows.width();
        for (auto c = begin; c < end; ++c) {
          part += hash_term(from[c], static_cast<std::uint64_t>(first + c));
        }
      }
      // Modulo 2^64 no order changes the sum.
      total.fetch_add(part, std::memory_order_relaxed);
    });
  });
  hash.i32()[0] = static_cast<std::int32_t>(total.load());
  hash.i32()[1] = static_cast<std::int32_t>(total.load() >> 32U);
}

double sum_of_squares(const Context& context, const Tensor& x) {
  const auto* numbers = data_of<float>(x);
  const Rows rows = x.contiguous() && x ? Rows(x.flat()) : Rows(x);
  constexpr std::int64_t chunk = 16384;
  const auto chunks_per_row = (rows.width() + chunk - 1) / chunk;
  std::vector<double> terms(static_cast<std::size_t>(rows.count() * chunks_per_row));
  const auto square_sum = tables_of(context.isa).arithmetic.sum_of_squares;
  parallel_for(*context.team, rows.count() * chunks_per_row, 1, [&](Range range) {
    for (auto index = range.begin; index < range.end; ++index) {
      const auto begin = index % chunks_per_row * chunk;
      terms[static_cast<std::size_t>(index)] =
          square_sum(numbers + rows.offset(index / chunks_per_row) + begin,
                     std::min(chunk, rows.width() - begin));
    }
  });
  return tree_sum(terms);
}

void add_column_sums(Context& context, const Tensor& x, const Tensor& sums) {
  const Rows rows(x);
  with_type(x.dtype(), [&](auto element) {
    const auto* numbers = data_of<decltype(element)>(x);
    const auto& functions = tables_of(context.isa).arithmetic.of(element);
    const auto* total = sum_columns(
        context, RowChunks(rows.count()), rows.width(), [&](Range range, float* partial) {
          for (auto row = range.begin; row < range.end; ++row) {
            functions.accumulate(numbers + rows.offset(row), partial, rows.width());
          }
        });
    if (total == nullptr) return;
    tables_of(context.isa).arithmetic.f32.accumulate(total, sums.f32(), rows.width());
  });
}

}  // namespace trireme::device::cpu
