// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"

#include "device/cpu/attention/attention.hpp"
#include "device/cpu/runtime/parallel.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/dropout_mask.hpp"
#include "device/elements.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

/// Parts that forward and backward of tiled attention share.
namespace trireme::device::cpu {

/// Rows of scores that a tile holds, and keys: 64 * 512 scores in fp32 and their weights fit the
/// second-level cache of a core beside the operands.
constexpr std::int64_t query_tile = 64;
constexpr std::int64_t key_tile = 512;

/// The lengths of a call.
struct AttentionSizes {
  explicit AttentionSizes(const Attention& attention)
      : batch(attention.q.dim(0)),
        queries(attention.q.dim(1)),
        keys(attention.k.dim(1)),
        heads(attention.q.dim(2)),
        kv_heads(attention.k.dim(2)),
        head_dim(attention.q.dim(3)),
        causal(attention.causal) {
    if (!attention.first_keys) return;
    first_keys = attention.first_keys.i32();
    first_keys_stride = attention.first_keys.stride(0);
  }

  std::int64_t group() const { return heads / kv_heads; }
  /// Multiplications and additions of one GEMM of queries and keys, causal or not.
  std::int64_t operations() const { return 2 * batch * heads * queries * keys * head_dim; }
  /// Keys [0, n) that a query sees.
  std::int64_t visible(std::int64_t query) const {
    return causal ? std::clamp<std::int64_t>(query + keys - queries + 1, 0, keys) : keys;
  }
  /// First of the keys that a query sees, which are those up to visible().
  std::int64_t first_key(std::int64_t sequence, std::int64_t query) const {
    return first_keys == nullptr ? 0 : first_keys[sequence * first_keys_stride + query];
  }
  /// The first tile of these queries, which all see the same first key: it begins where a document
  /// does, so that sums over its keys and queries come in the order that the document has by
  /// itself.
  Range first_tile(std::int64_t sequence, Range range) const {
    auto end = std::min(range.end, range.begin + query_tile);
    while (first_key(sequence, end - 1) != first_key(sequence, range.begin)) --end;
    return {range.begin, end};
  }
  /// Rows and columns of products of documents, which have all lengths: rounded up, so that few
  /// products are compiled.
  std::int64_t tile_rows(std::int64_t count) const { return rounded(count, 16); }
  std::int64_t tile_columns(std::int64_t count) const { return rounded(count, 64); }
  std::int64_t rounded(std::int64_t count, std::int64_t step) const {
    return first_keys == nullptr ? count : (count + step - 1) / step * step;
  }
  /// Rows behind gathered keys, to which the columns of a tile may be rounded up.
  std::int64_t spare_keys() const { return tile_columns(1) - 1; }

  std::int64_t batch;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  bool causal;
  const std::int32_t* first_keys = nullptr;  // Attention::first_keys, or null
  std::int64_t first_keys_stride = 0;
};

/// One head of one sequence of [batch, seq, heads, head_dim].
template <typename T>
struct HeadView {
  HeadView(const Tensor& x, std::int64_t sequence, std::int64_t head)
      : data(data_of<T>(x) + sequence * x.stride(0) + head * x.stride(2)), stride(x.stride(1)) {}

  T* row(std::int64_t position) const { return data + position * stride; }
  /// Rows [range) made neighbours.
  void gather(Range range, std::int64_t width, T* to) const {
    for (auto position = range.begin; position < range.end; ++position) {
      std::memcpy(static_cast<void*>(to), row(position),
                  static_cast<std::size_t>(width) * sizeof(T));
      to += width;
    }
  }

  T* data;
  std::int64_t stride;
};

/// Zeros in the rows that round up a tile of these queries.
template <typename T>
void clear_spare_rows(T* rows, Range queries, const AttentionSizes& sizes, std::int64_t width) {
  const auto spare = sizes.tile_rows(queries.count()) - queries.count();
  std::fill_n(rows + queries.count() * width, spare * width, T{});
}

/// Keys or values [range) of a head, and zeros in the spare rows behind them.
template <typename T>
void gather_keys(const HeadView<T>& from, Range range, const AttentionSizes& sizes, T* to) {
  from.gather(range, sizes.head_dim, to);
  std::fill_n(to + range.count() * sizes.head_dim, sizes.spare_keys() * sizes.head_dim, T{});
}

/// Rows [range) of a head, and zeros in those that round them up.
template <typename T>
void gather_queries(const HeadView<T>& from, Range range, const AttentionSizes& sizes, T* to) {
  from.gather(range, sizes.head_dim, to);
  clear_spare_rows(to, range, sizes, sizes.head_dim);
}

/// Memory for `count` numbers, from an arena that may only measure.
template <typename T>
T* take(Arena& arena, std::int64_t count) {
  const auto dtype = sizeof(T) == sizeof(Bf16) ? DType::bf16 : DType::f32;
  return static_cast<T*>(arena.allocate(dtype, {count}).raw());
}

/// The worker's arena, empty and at least this large.
inline Arena& arena_of(FlashAttention::Worker& worker, std::size_t bytes) {
  if (worker.arena.capacity_bytes() < bytes) worker.arena = Arena::host(Purpose::workspace, bytes);
  worker.arena.release(0);
  return worker.arena;
}

template <typename T>
constexpr DType dtype_of() {
  return sizeof(T) == sizeof(Bf16) ? DType::bf16 : DType::f32;
}

/// c [rows, columns] = a [rows, inner] * b, all contiguous but a, whose rows are `a_stride` apart.
template <typename T>
BlockDescriptor tile_gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  BlockDescriptor descriptor{.rows = rows, .columns = columns, .inner = inner};
  descriptor.a_stride = inner;
  descriptor.b_stride = columns;
  descriptor.c_stride = columns;
  descriptor.in = dtype_of<T>();
  return descriptor;
}

/// a [rows, inner] * transpose(b [columns, inner]).
template <typename T>
BlockDescriptor scores_gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  auto descriptor = tile_gemm<T>(rows, columns, inner);
  descriptor.b_stride = inner;
  descriptor.b_transposed = true;
  return descriptor;
}

/// c += a [rows, inner] * b [inner, columns].
template <typename T>
BlockDescriptor adding_gemm(std::int64_t rows, std::int64_t columns, std::int64_t inner) {
  auto descriptor = tile_gemm<T>(rows, columns, inner);
  descriptor.accumulate = true;
  return descriptor;
}

/// c += transpose(a [inner, rows]) * b [inner, columns].
template <typename T>
BlockDescriptor transposed_adding_gemm(std::int64_t rows, std::int64_t columns,
                                       std::int64_t inner) {
  auto descriptor = adding_gemm<T>(rows, columns, inner);
  descriptor.a_stride = rows;
  descriptor.a_transposed = true;
  return descriptor;
}

/// Dropout factors of a run of keys of one query, or null without dropout.
class AttentionMask {
 public:
  AttentionMask(const Attention& attention, Isa isa, float* factors)
      : attention_(attention),
        make_(tables_of(isa).dropout.factors),
        numbers_{attention.dropout.rate, 1.0F / (1.0F - attention.dropout.rate),
                 attention.dropout.seed, attention.dropout.stream},
        factors_(factors) {}

  const float* of(std::int64_t sequence, std::int64_t head, std::int64_t query, Range keys) const {
    if (numbers_.rate == 0.0F || keys.count() <= 0) return nullptr;
    const auto index = attention_dropout_index(attention_, sequence, head, query) + keys.begin;
    make_(numbers_, static_cast<std::uint64_t>(index), factors_, keys.count());
    return factors_;
  }

 private:
  const Attention& attention_;
  decltype(DropoutTable::factors) make_;
  MaskNumbers numbers_;
  float* factors_;
};

/// body(worker, part) for every part in [0, parts), by the workers in turn, as many as the work
/// is worth. The body throws nothing.
template <typename Body>
void for_parts(Team& team, std::vector<FlashAttention::Worker>& workers,
               const AttentionSizes& sizes, std::int64_t parts, const Body& body) {
  constexpr std::int64_t worth_a_thread = 500'000;
  const auto worthy = 1 + sizes.operations() / worth_a_thread;
  const auto threads = std::min({parts, worthy, static_cast<std::int64_t>(workers.size())});
  std::atomic<std::int64_t> next{0};
  parallel(team, static_cast<int>(threads), [&](int thread) {
    const SerialScope serial;
    for (auto part = next++; part < parts; part = next++) {
      body(workers[static_cast<std::size_t>(thread)], part);
    }
  });
}

}  // namespace trireme::device::cpu
