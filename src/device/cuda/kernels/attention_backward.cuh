// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/attention_tiles.cuh"

#include <cmath>

/// Backward of attention: with p the softmax and m the dropout factors, out = (p * m) v. Then
/// dv = (p * m) d_out, ds = scale * p * (m * (d_out v) - d_out . out), dq = ds k, dk = ds q
/// (Dao et al. 2022, algorithm 4). Scores are computed twice, once for dq and once for dk and dv,
/// so that every sum belongs to one warp and nothing is added by atomics.
namespace trireme::device::cuda {

template <typename T>
struct AttentionBackwardOperands {
  AttentionShape shape;
  Heads<const T> q;
  Heads<const T> k;
  Heads<const T> v;
  Heads<const T> d_out;
  Heads<T> dq;
  Heads<T> dk;
  Heads<T> dv;
  simt::Global<const float> lse;
  /// d_out . out of each query.
  simt::Global<const float> delta;
};

/// A warp takes a query of a head.
template <typename T>
__global__ void __launch_bounds__(attention_threads, 1)
    attention_delta(AttentionShape shape, Heads<const T> out, Heads<const T> d_out,
                    simt::Global<float> delta) {
  const auto index = simt::block() * attention_warps + simt::warp();
  if (index >= shape.batch * shape.heads * shape.queries) return;
  const auto row = divide(index, shape.queries);
  const auto pair = divide(row.whole, shape.heads);
  const auto a = out.row(pair.whole, row.rest, pair.rest);
  const auto b = d_out.row(pair.whole, row.rest, pair.rest);
  float sum[1] = {0.0F};
  for (std::int64_t c = simt::lane(); c < shape.head_dim; c += simt::warp_size) {
    sum[0] += simt::widen(a.load(c)) * simt::widen(b.load(c));
  }
  warp_sums(sum);
  if (simt::lane() == 0) delta.store(index, sum[0]);
}

/// One score's part in the gradients.
struct ScoreGradient {
  float weight = 0.0F;  // p * m
  float ds = 0.0F;
};

/// Statistics of a query besides its numbers.
struct QueryStatistics {
  std::int64_t query;
  std::int64_t first_key;
  std::int64_t visible;
  float lse;
  float delta;
};

__device__ inline ScoreGradient score_gradient(const AttentionShape& shape,
                                               const QueryStatistics& at, std::int64_t key,
                                               float factor, const float (&dots)[2]) {
  if (key < at.first_key || key >= at.visible) return {};
  const float p = expf(dots[0] * shape.scale - at.lse);
  // The softmax of one score is 1 whatever the score is.
  const float ds =
      at.visible - at.first_key == 1 ? 0.0F : p * (factor * dots[1] - at.delta) * shape.scale;
  return {p * factor, ds};
}

template <typename T>
__device__ QueryStatistics statistics_of(const AttentionBackwardOperands<T>& a,
                                         const AttentionPlace& place, std::int64_t query) {
  if (query >= a.shape.queries) return {query, 0, 0, 0.0F, 0.0F};
  const auto index = a.shape.statistics(place.sequence, place.head) + query;
  return {query, a.shape.first_key(place.sequence, query), a.shape.visible(query),
          a.lse.load(index), a.delta.load(index)};
}

__device__ inline float mask_factor(const AttentionShape& shape, const AttentionPlace& place,
                                    std::int64_t query, std::int64_t key) {
  if (!shape.mask.active()) return 1.0F;
  return shape.mask.factor(shape.mask_index(place.sequence, place.head, query) + key);
}

/// A warp keeps R queries and passes over the keys that they see.
template <typename T, int D, int R>
__global__ void __launch_bounds__(attention_threads, 1)
    attention_backward_queries(AttentionBackwardOperands<T> a) {
  constexpr int block_queries = attention_warps * R;
  constexpr int columns = D / simt::warp_size;
  __shared__ Tile<D, block_queries> q;
  __shared__ Tile<D, block_queries> d_out;
  __shared__ Tile<D, tile_rows> k;
  __shared__ Tile<D, tile_rows> v;
  __shared__ simt::Shared<float, block_queries * tile_rows> gradients;
  const auto& shape = a.shape;
  const auto place = attention_place(shape.heads, shape.queries, block_queries);
  const auto kv_head = divide(place.head, shape.group).whole;
  load_tile<D, block_queries>(q, shape, a.q, place, shape.queries);
  load_tile<D, block_queries>(d_out, shape, a.d_out, place, shape.queries);
  float dq[R][columns];
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < columns; ++i) dq[r][i] = 0.0F;
  }
  const auto last = place.first + block_queries - 1;
  const auto seen = shape.visible(last < shape.queries ? last : shape.queries - 1);
  for (auto first = shape.first_tile(place.sequence, place.first); first < seen;
       first += tile_rows) {
    simt::sync();  // the former tile has been read
    load_tile<D, tile_rows>(k, shape, a.k, {place.sequence, kv_head, first}, shape.keys);
    load_tile<D, tile_rows>(v, shape, a.v, {place.sequence, kv_head, first}, shape.keys);
    simt::sync();
    float scores[R];
    float through[R];
    multiply_rows<D, R, block_queries>(q, k, shape.tile_columns(), scores);
    multiply_rows<D, R, block_queries>(d_out, v, shape.tile_columns(), through);
    const auto key = first + simt::lane();
    for (int r = 0; r < R; ++r) {
      const auto at = statistics_of(a, place, place.first + simt::warp() * R + r);
      const auto gradient = score_gradient(shape, at, key, mask_factor(shape, place, at.query, key),
                                           {scores[r], through[r]});
      gradients.store((simt::warp() * R + r) * tile_rows + simt::lane(), gradient.ds);
    }
    simt::sync_warp();
    add_rows<D, R>(gradients, k, dq);
  }
  for (int r = 0; r < R; ++r) {
    const auto query = place.first + simt::warp() * R + r;
    if (query >= shape.queries) continue;
    store_row<D>(a.dq.row(place.sequence, query, place.head), shape, dq[r], 1.0F);
  }
}

/// A warp keeps R keys and passes over the queries of its group that see any of the block's.
template <typename T, int D, int R>
__global__ void __launch_bounds__(attention_threads, 1)
    attention_backward_keys(AttentionBackwardOperands<T> a) {
  constexpr int block_keys = attention_warps * R;
  constexpr int columns = D / simt::warp_size;
  __shared__ Tile<D, block_keys> k;
  __shared__ Tile<D, block_keys> v;
  __shared__ Tile<D, tile_rows> q;
  __shared__ Tile<D, tile_rows> d_out;
  __shared__ simt::Shared<float, block_keys * tile_rows> weights;
  __shared__ simt::Shared<float, block_keys * tile_rows> gradients;
  const auto& shape = a.shape;
  const auto own = attention_place(shape.kv_heads, shape.keys, block_keys);
  load_tile<D, block_keys>(k, shape, a.k, own, shape.keys);
  load_tile<D, block_keys>(v, shape, a.v, own, shape.keys);
  float dk[R][columns] = {};
  float dv[R][columns] = {};
  const auto earliest = shape.causal ? own.first + shape.queries - shape.keys : 0;
  const auto begin = earliest > 0 ? earliest / tile_rows * tile_rows : 0;
  const auto behind = own.first + block_keys;
  for (auto head = own.head * shape.group; head < (own.head + 1) * shape.group; ++head) {
    for (auto first = begin; first < shape.queries; first += tile_rows) {
      // Queries of later documents see none of these keys, nor do those behind them.
      if (shape.first_key(own.sequence, first) >= behind) break;
      const AttentionPlace place{own.sequence, head, first};
      simt::sync();  // the former tile has been read
      load_tile<D, tile_rows>(q, shape, a.q, place, shape.queries);
      load_tile<D, tile_rows>(d_out, shape, a.d_out, place, shape.queries);
      simt::sync();
      float scores[R];
      float through[R];
      multiply_rows<D, R, block_keys>(k, q, shape.tile_columns(), scores);
      multiply_rows<D, R, block_keys>(v, d_out, shape.tile_columns(), through);
      const auto at = statistics_of(a, place, first + simt::lane());
      for (int r = 0; r < R; ++r) {
        const auto key = own.first + simt::warp() * R + r;
        const auto gradient = score_gradient(
            shape, at, key, mask_factor(shape, place, at.query, key), {scores[r], through[r]});
        const int index = (simt::warp() * R + r) * tile_rows + simt::lane();
        weights.store(index, gradient.weight);
        gradients.store(index, gradient.ds);
      }
      simt::sync_warp();
      add_rows<D, R>(weights, d_out, dv);
      add_rows<D, R>(gradients, q, dk);
    }
  }
  for (int r = 0; r < R; ++r) {
    const auto key = own.first + simt::warp() * R + r;
    if (key >= shape.keys) continue;
    store_row<D>(a.dk.row(own.sequence, key, own.head), shape, dk[r], 1.0F);
    store_row<D>(a.dv.row(own.sequence, key, own.head), shape, dv[r], 1.0F);
  }
}

template <typename T, int D, typename L>
void launch_attention_backward(L& launcher, const AttentionBackward& backward) {
  constexpr int rows_of_a_warp = 2;
  constexpr int block_rows = attention_warps * rows_of_a_warp;
  const auto& attention = backward.forward;
  auto shape = shape_of(launcher, attention, pack_size<T>);
  shape.packed = shape.packed && packable(backward.d_out, pack_size<T>);
  const auto queries = shape.batch * shape.heads * shape.queries;
  auto delta = launcher.template workspace<float>(queries);
  const auto d_out = heads_of<const T>(launcher, backward.d_out);
  const AttentionBackwardOperands<T> operands{shape,
                                              heads_of<const T>(launcher, attention.q),
                                              heads_of<const T>(launcher, attention.k),
                                              heads_of<const T>(launcher, attention.v),
                                              d_out,
                                              heads_of<T>(launcher, backward.dq),
                                              heads_of<T>(launcher, backward.dk),
                                              heads_of<T>(launcher, backward.dv),
                                              memory_of<const float>(launcher, attention.lse),
                                              delta};
  launcher.launch("attention_delta", &attention_delta<T>,
                  Grid{ceil_div(queries, attention_warps), attention_threads}, shape,
                  heads_of<const T>(launcher, attention.out), d_out, delta);
  launcher.launch(
      "attention_backward_queries", &attention_backward_queries<T, D, rows_of_a_warp>,
      Grid{shape.batch * shape.heads * ceil_div(shape.queries, block_rows), attention_threads},
      operands);
  launcher.launch(
      "attention_backward_keys", &attention_backward_keys<T, D, rows_of_a_warp>,
      Grid{shape.batch * shape.kv_heads * ceil_div(shape.keys, block_rows), attention_threads},
      operands);
}

template <typename L>
void run(L& launcher, const AttentionBackward& backward) {
  const auto& attention = backward.forward;
  TRIREME_EXPECT(attention.q.element_count() > 0 && attention.k.element_count() > 0,
                 "attention: backward of nothing");
  with_head(attention, [&](auto element, auto head) {
    launch_attention_backward<decltype(element), decltype(head)::value>(launcher, backward);
  });
}

}  // namespace trireme::device::cuda
