// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"
#include "device/cuda/kernels/mask.cuh"
#include "device/cuda/kernels/own_operations.hpp"
#include "device/cuda/kernels/reduce.cuh"

/// Parts that the own attention kernels share. A block of four warps keeps some rows (queries, or
/// keys in the gradient of keys) and passes over the others in tiles of 32, one for each lane: a
/// lane holds the scores of its row of the tile, and the columns lane, lane + 32... of each result.
namespace trireme::device::cuda {

constexpr int attention_warps = 4;
constexpr int attention_threads = attention_warps * simt::warp_size;
constexpr int tile_rows = simt::warp_size;

/// A row of a tile in shared memory: four floats more than the head, so that 16-byte reads of
/// neighbouring rows meet all banks.
template <int D>
constexpr int tile_pitch = D + 4;

template <int D, int rows>
using Tile = simt::Shared<float, rows * tile_pitch<D>>;

/// Rows of heads: [batch, seq, heads, head_dim] with strides.
template <typename T>
struct Heads {
  simt::Global<T> data;
  std::int64_t sequence_stride = 0;
  std::int64_t position_stride = 0;
  std::int64_t head_stride = 0;

  __device__ simt::Global<T> row(std::int64_t sequence, std::int64_t position,
                                 std::int64_t head) const {
    return data.from(sequence * sequence_stride + position * position_stride + head * head_stride);
  }
};

template <typename T, typename L>
Heads<T> heads_of(L& launcher, const Tensor& x) {
  return {memory_of<T>(launcher, x), x.stride(0), x.stride(1), x.stride(2)};
}

struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  /// Heads that share a key-value head.
  std::int64_t group = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  /// Tokens of a whole sequence.
  std::int64_t length = 0;
  std::int64_t head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  /// Rows may be read 16 bytes at a time.
  bool packed = false;
  Mask mask{Dropout()};
  /// Attention::first_keys.
  simt::Global<const std::int32_t> first_keys;
  std::int64_t first_keys_stride = 0;

  /// Keys [0, n) that a query sees; none where there is no such query.
  __device__ std::int64_t visible(std::int64_t query) const {
    if (query >= queries) return 0;
    if (!causal) return keys;
    const auto seen = query + keys - queries + 1;
    return seen < 0 ? 0 : (seen < keys ? seen : keys);
  }
  /// First of these that it sees; 0 where there is no such query.
  __device__ std::int64_t first_key(std::int64_t sequence, std::int64_t query) const {
    if (!first_keys || query >= queries) return 0;
    return first_keys.load(sequence * first_keys_stride + query);
  }
  /// First tile of keys that a query sees, and with it those behind it: tiles before are skipped.
  /// Tiles begin where they do without first keys, so that each sum keeps its order.
  __device__ std::int64_t first_tile(std::int64_t sequence, std::int64_t query) const {
    return first_key(sequence, query) / tile_rows * tile_rows;
  }
  /// Columns of a tile that hold a head: whole reads of four.
  __device__ int tile_columns() const { return static_cast<int>((head_dim + 3) / 4 * 4); }
  /// Index into lse of query 0.
  __device__ std::int64_t statistics(std::int64_t sequence, std::int64_t head) const {
    return (sequence * heads + head) * queries;
  }
  /// The number of the first key's score under the dropout mask.
  __device__ std::int64_t mask_index(std::int64_t sequence, std::int64_t head,
                                     std::int64_t query) const {
    const auto global_head = mask.first_of(sequence) + head;
    return (global_head * length + keys - queries + query) * length;
  }
};

/// Rows that a block works on: the first of them, of one head of one sequence.
struct AttentionPlace {
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t first;
};

/// Blocks are numbered by sequence, head and run of rows; late rows, which see most keys when
/// causal, come first.
__device__ inline AttentionPlace attention_place(std::int64_t heads, std::int64_t rows,
                                                 int rows_per_block) {
  const auto runs = (rows + rows_per_block - 1) / rows_per_block;
  const auto place = divide(simt::block(), runs);
  const auto pair = divide(place.whole, heads);
  return {pair.whole, pair.rest, (runs - 1 - place.rest) * rows_per_block};
}

/// Copies `rows` rows from position `first` on into shared memory, as floats; zeros beyond the
/// last of `positions` and beyond the head.
template <int D, int rows, typename T>
__device__ void load_tile(Tile<D, rows>& tile, const AttentionShape& shape, const Heads<T>& from,
                          const AttentionPlace& place, std::int64_t positions) {
  using Element = typename simt::Global<T>::Element;
  constexpr int at_once = 16 / static_cast<int>(sizeof(Element));
  for (int i = simt::thread(); i < rows * (D / at_once); i += simt::threads()) {
    const int row = i / (D / at_once);
    const int column = (i - row * (D / at_once)) * at_once;
    const auto position = place.first + row;
    Floats<at_once> values;
    for (int n = 0; n < at_once; ++n) values[n] = 0.0F;
    if (position < positions && column < shape.head_dim) {
      const auto source = from.row(place.sequence, position, place.head);
      if (shape.packed) {
        values = load_floats<at_once>(source, column);
      } else {
        for (int n = 0; n < at_once && column + n < shape.head_dim; ++n) {
          values[n] = simt::widen(source.load(column + n));
        }
      }
    }
    for (int n = 0; n < at_once; n += 4) {
      Floats<4> part;
      for (int k = 0; k < 4; ++k) part[k] = values[n + k];
      tile.template store_pack<4>(row * tile_pitch<D> + column + n, part);
    }
  }
}

/// dots[r] = kept row (warp * R + r) times the lane's row of the tile, over `columns` of them.
template <int D, int R, int kept_rows>
__device__ void multiply_rows(const Tile<D, kept_rows>& kept, const Tile<D, tile_rows>& tile,
                              int columns, float (&dots)[R]) {
  for (int r = 0; r < R; ++r) dots[r] = 0.0F;
  for (int d = 0; d < columns; d += 4) {
    const auto b = tile.template load_pack<4>(simt::lane() * tile_pitch<D> + d);
    for (int r = 0; r < R; ++r) {
      const auto a = kept.template load_pack<4>((simt::warp() * R + r) * tile_pitch<D> + d);
      for (int i = 0; i < 4; ++i) dots[r] += a[i] * b[i];
    }
  }
}

/// sums[r][i] += over the tile's rows j: factors[warp * R + r][j] * tile[j][lane + 32 i].
template <int D, int R>
__device__ void add_rows(const simt::Shared<float, attention_warps * R * tile_rows>& factors,
                         const Tile<D, tile_rows>& tile, float (&sums)[R][D / simt::warp_size]) {
  for (int j = 0; j < tile_rows; ++j) {
    float factor[R];
    for (int r = 0; r < R; ++r) factor[r] = factors.load((simt::warp() * R + r) * tile_rows + j);
    for (int i = 0; i < D / simt::warp_size; ++i) {
      const float value = tile.load(j * tile_pitch<D> + i * simt::warp_size + simt::lane());
      for (int r = 0; r < R; ++r) sums[r][i] += factor[r] * value;
    }
  }
}

/// Writes a lane's columns of one row, times `factor`.
template <int D, typename T>
__device__ void store_row(const simt::Global<T>& row, const AttentionShape& shape,
                          const float (&values)[D / simt::warp_size], float factor) {
  for (int i = 0; i < D / simt::warp_size; ++i) {
    const int column = i * simt::warp_size + simt::lane();
    if (column < shape.head_dim) row.store(column, simt::narrow<T>(values[i] * factor));
  }
}

template <typename L>
AttentionShape shape_of(L& launcher, const Attention& attention, std::int64_t pack) {
  const auto& q = attention.q;
  const auto& k = attention.k;
  AttentionShape shape;
  shape.batch = q.dim(0);
  shape.heads = q.dim(2);
  shape.kv_heads = k.dim(2);
  shape.group = shape.heads / shape.kv_heads;
  shape.queries = q.dim(1);
  shape.keys = k.dim(1);
  shape.length = attention.whole_length();
  shape.head_dim = q.dim(3);
  shape.scale = attention.scale;
  shape.causal = attention.causal;
  shape.packed = shape.head_dim % pack == 0 && all_packable(pack, q, k, attention.v);
  shape.mask = Mask(attention.dropout);
  if (const auto& first_keys = attention.first_keys) {
    shape.first_keys = tokens_of(launcher, first_keys);
    shape.first_keys_stride = first_keys.stride(0);
  }
  return shape;
}

/// body(element, std::integral_constant<int, D>) with the smallest D that holds a head.
template <typename Body>
void with_head(const Attention& attention, const Body& body) {
  const auto head_dim = attention.q.dim(3);
  TRIREME_EXPECT(head_dim <= widest_own_head,
                 "the own attention kernels take heads of up to 128: " + attention.q.text());
  with_type(attention.q.dtype(), [&](auto element) {
    if (head_dim <= 64) {
      body(element, std::integral_constant<int, 64>{});
    } else {
      body(element, std::integral_constant<int, 128>{});
    }
  });
}

}  // namespace trireme::device::cuda
