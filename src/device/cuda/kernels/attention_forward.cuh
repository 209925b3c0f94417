// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/attention_tiles.cuh"

#include <cmath>

namespace trireme::device::cuda {

template <typename T>
struct AttentionForwardOperands {
  AttentionShape shape;
  Heads<const T> q;
  Heads<const T> k;
  Heads<const T> v;
  Heads<T> out;
  simt::Global<float> lse;
};

/// The softmax of one query so far: largest score, sum of exponentials (Milakov & Gimelshein
/// 2018). The same in all lanes of a warp.
struct RunningSoftmax {
  float largest = -INFINITY;
  float sum = 0.0F;

  /// Takes 32 scores, one a lane. Makes `score` its weight; what is summed so far must be
  /// multiplied by the result.
  __device__ float take(float& score) {
    float tile_largest = score;
    for (int mask = simt::warp_size / 2; mask > 0; mask /= 2) {
      tile_largest = fmaxf(tile_largest, simt::shuffle_xor(tile_largest, mask));
    }
    const float both = fmaxf(largest, tile_largest);
    const bool nothing = both == -INFINITY;
    const float correction = nothing ? 1.0F : expf(largest - both);
    score = nothing ? 0.0F : expf(score - both);
    float total[1] = {score};
    warp_sums(total);
    sum = sum * correction + total[0];
    largest = both;
    return correction;
  }
};

/// Flash attention (Dao 2023): scores live in registers, 32 keys at a time. A warp keeps R queries.
template <typename T, int D, int R>
__global__ void __launch_bounds__(attention_threads, 1)
    attention_forward_tiles(AttentionForwardOperands<T> a) {
  constexpr int block_queries = attention_warps * R;
  constexpr int columns = D / simt::warp_size;
  __shared__ Tile<D, block_queries> q;
  __shared__ Tile<D, tile_rows> k;
  __shared__ Tile<D, tile_rows> v;
  __shared__ simt::Shared<float, block_queries * tile_rows> weights;
  const auto& shape = a.shape;
  const auto place = attention_place(shape.heads, shape.queries, block_queries);
  const auto kv_head = divide(place.head, shape.group).whole;
  load_tile<D, block_queries>(q, shape, a.q, place, shape.queries);

  RunningSoftmax softmax[R];
  float out[R][columns] = {};
  std::int64_t first_keys[R];
  for (int r = 0; r < R; ++r) {
    first_keys[r] = shape.first_key(place.sequence, place.first + simt::warp() * R + r);
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
    multiply_rows<D, R, block_queries>(q, k, shape.tile_columns(), scores);
    const auto key = first + simt::lane();
    for (int r = 0; r < R; ++r) {
      const auto query = place.first + simt::warp() * R + r;
      const bool sees = key >= first_keys[r] && key < shape.visible(query);
      float weight = sees ? scores[r] * shape.scale : -INFINITY;
      const float correction = softmax[r].take(weight);
      for (int i = 0; i < columns; ++i) out[r][i] *= correction;
      if (shape.mask.active()) {
        weight *= shape.mask.factor(shape.mask_index(place.sequence, place.head, query) + key);
      }
      weights.store((simt::warp() * R + r) * tile_rows + simt::lane(), weight);
    }
    simt::sync_warp();
    add_rows<D, R>(weights, v, out);
  }
  for (int r = 0; r < R; ++r) {
    const auto query = place.first + simt::warp() * R + r;
    if (query >= shape.queries) continue;
    // A query that sees no key attends to nothing.
    const float factor = softmax[r].sum > 0.0F ? 1.0F / softmax[r].sum : 0.0F;
    store_row<D>(a.out.row(place.sequence, query, place.head), shape, out[r], factor);
    if (a.lse && simt::lane() == 0) {
      a.lse.store(shape.statistics(place.sequence, place.head) + query,
                  softmax[r].largest + logf(softmax[r].sum));
    }
  }
}

template <typename L>
void run(L& launcher, const Attention& attention) {
  constexpr int queries_of_a_warp = 4;
  with_head(attention, [&](auto element, auto head) {
    using T = decltype(element);
    constexpr int head_size = decltype(head)::value;
    const auto shape = shape_of(launcher, attention, pack_size<T>);
    const auto runs = ceil_div(shape.queries, attention_warps * queries_of_a_warp);
    if (shape.batch * shape.heads * runs == 0) return;
    launcher.launch("attention_forward", &attention_forward_tiles<T, head_size, queries_of_a_warp>,
                    Grid{shape.batch * shape.heads * runs, attention_threads},
                    AttentionForwardOperands<T>{shape, heads_of<const T>(launcher, attention.q),
                                                heads_of<const T>(launcher, attention.k),
                                                heads_of<const T>(launcher, attention.v),
                                                heads_of<T>(launcher, attention.out),
                                                memory_of<float>(launcher, attention.lse)});
  });
}

}  // namespace trireme::device::cuda
