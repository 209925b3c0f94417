// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/attention/attention_tiles.hpp"

namespace trireme::device::cpu {
namespace {

/// Memory of one key-value head.
template <typename T>
struct BackwardTiles {
  BackwardTiles(Arena& arena, const AttentionSizes& sizes)
      : k(take<T>(arena, gathered(sizes))),
        v(take<T>(arena, gathered(sizes))),
        q(take<T>(arena, query_tile * sizes.head_dim)),
        d_out(take<T>(arena, query_tile * sizes.head_dim)),
        weights(take<T>(arena, query_tile * key_tile)),
        d_scores(take<T>(arena, query_tile * key_tile)),
        scores(take<float>(arena, query_tile * key_tile)),
        d_weights(take<float>(arena, query_tile * key_tile)),
        dq(take<float>(arena, query_tile * sizes.head_dim)),
        dk(take<float>(arena, gathered(sizes))),
        dv(take<float>(arena, gathered(sizes))),
        factors(take<float>(arena, key_tile)) {}

  /// Elements of all keys of a head, and of the spare rows behind them.
  static std::int64_t gathered(const AttentionSizes& sizes) {
    return (sizes.keys + sizes.spare_keys()) * sizes.head_dim;
  }
  static std::size_t bytes(const AttentionSizes& sizes) {
    auto arena = Arena::measuring(Purpose::workspace);
    const BackwardTiles measured(arena, sizes);
    return arena.used_bytes();
  }

  T* k;
  T* v;
  T* q;
  T* d_out;
  T* weights;
  T* d_scores;
  float* scores;
  float* d_weights;
  float* dq;
  float* dk;
  float* dv;
  float* factors;
};

/// Backward of one key-value head of one sequence, with every query head of its group: sums over
/// queries go from the first head and query to the last. With p the softmax and m the dropout
/// factors, dv = (p * m) d_out, ds = p * (m * (d_out v) - d_out . out), dq = scale * ds k,
/// dk = scale * ds q (Dao et al. 2022, algorithm 4).
template <typename T>
class BackwardHead {
 public:
  BackwardHead(const AttentionBackward& backward, Isa isa, std::int64_t sequence,
               std::int64_t kv_head)
      : backward_(backward),
        attention_(backward.forward),
        sizes_(backward.forward),
        functions_(tables_of(isa).attention.of(T{})),
        isa_(isa),
        sequence_(sequence),
        kv_head_(kv_head) {}

  void run(FlashAttention::Worker& worker) const {
    const BackwardTiles<T> tiles(arena_of(worker, BackwardTiles<T>::bytes(sizes_)), sizes_);
    const auto width = sizes_.head_dim;
    const Range keys{0, sizes_.keys};
    gather_keys(HeadView<T>(attention_.k, sequence_, kv_head_), keys, sizes_, tiles.k);
    gather_keys(HeadView<T>(attention_.v, sequence_, kv_head_), keys, sizes_, tiles.v);
    std::fill_n(tiles.dk, BackwardTiles<T>::gathered(sizes_), 0.0F);
    std::fill_n(tiles.dv, BackwardTiles<T>::gathered(sizes_), 0.0F);
    for (auto head = kv_head_ * sizes_.group(); head < (kv_head_ + 1) * sizes_.group(); ++head) {
      Range queries{0, sizes_.queries};
      while (queries.count() > 0) {
        const auto tile = sizes_.first_tile(sequence_, queries);
        run_tile(worker.gemm, tiles, head, tile);
        queries.begin = tile.end;
      }
    }
    const HeadView<T> dk(backward_.dk, sequence_, kv_head_);
    const HeadView<T> dv(backward_.dv, sequence_, kv_head_);
    for (std::int64_t key = 0; key < sizes_.keys; ++key) {
      functions_.scaled(tiles.dk + key * width, width, 1.0F, dk.row(key));
      functions_.scaled(tiles.dv + key * width, width, 1.0F, dv.row(key));
    }
  }

 private:
  /// Queries of one head that see the same first key, with all keys that they see.
  void run_tile(BlockGemm& gemm, const BackwardTiles<T>& tiles, std::int64_t head,
                Range queries) const {
    const auto width = sizes_.head_dim;
    const auto rows = sizes_.tile_rows(queries.count());
    float deltas[query_tile];
    const HeadView<T> d_out(backward_.d_out, sequence_, head);
    const HeadView<T> out(attention_.out, sequence_, head);
    gather_queries(HeadView<T>(attention_.q, sequence_, head), queries, sizes_, tiles.q);
    gather_queries(d_out, queries, sizes_, tiles.d_out);
    for (std::int64_t row = 0; row < queries.count(); ++row) {
      deltas[row] = functions_.dot(tiles.d_out + row * width, out.row(queries.begin + row), width);
    }
    std::fill_n(tiles.dq, rows * width, 0.0F);
    const auto keys = sizes_.visible(queries.end - 1);
    for (auto key = sizes_.first_key(sequence_, queries.begin); key < keys; key += key_tile) {
      const auto columns = sizes_.tile_columns(std::min(keys - key, key_tile));
      const auto scores = scores_gemm<T>(rows, columns, width);
      gemm.run(scores, {tiles.q, tiles.k + key * width, tiles.scores});
      gemm.run(scores, {tiles.d_out, tiles.v + key * width, tiles.d_weights});
      differentiate(tiles, head, queries, {key, key + columns}, deltas);
      const auto of_keys = transposed_adding_gemm<T>(columns, width, rows);
      gemm.run(of_keys, {tiles.weights, tiles.d_out, tiles.dv + key * width});
      gemm.run(of_keys, {tiles.d_scores, tiles.q, tiles.dk + key * width});
      gemm.run(adding_gemm<T>(rows, width, columns),
               {tiles.d_scores, tiles.k + key * width, tiles.dq});
    }
    const HeadView<T> dq(backward_.dq, sequence_, head);
    for (std::int64_t row = 0; row < queries.count(); ++row) {
      functions_.scaled(tiles.dq + row * width, width, 1.0F, dq.row(queries.begin + row));
    }
  }

  /// Scores become weights, gradients of weights those of scores.
  void differentiate(const BackwardTiles<T>& tiles, std::int64_t head, Range queries, Range keys,
                     const float* deltas) const {
    const AttentionMask mask(attention_, isa_, tiles.factors);
    const auto* lse = attention_.lse.f32() + (sequence_ * sizes_.heads + head) * sizes_.queries;
    const auto first = sizes_.first_key(sequence_, queries.begin);
    clear_spare_rows(tiles.weights, queries, sizes_, keys.count());
    clear_spare_rows(tiles.d_scores, queries, sizes_, keys.count());
    for (auto query = queries.begin; query < queries.end; ++query) {
      const auto row = query - queries.begin;
      const auto place = row * keys.count();
      const auto seen =
          std::clamp<std::int64_t>(sizes_.visible(query) - keys.begin, 0, keys.count());
      functions_.softmax_gradient({tiles.scores + place, tiles.d_weights + place, seen,
                                   keys.count(), attention_.scale, lse[query], deltas[row],
                                   mask.of(sequence_, head, query, {keys.begin, keys.begin + seen}),
                                   tiles.weights + place, tiles.d_scores + place});
      // The softmax of one score is 1 whatever the score is; rounding would leave a little.
      if (sizes_.visible(query) - first == 1) tiles.d_scores[place] = T{};
    }
  }

  const AttentionBackward& backward_;
  const Attention& attention_;
  AttentionSizes sizes_;
  const AttentionFunctions<T>& functions_;
  Isa isa_;
  std::int64_t sequence_;
  std::int64_t kv_head_;
};

template <typename T>
void run_backward(Team& team, std::vector<FlashAttention::Worker>& workers, Isa isa,
                  const AttentionBackward& backward) {
  const AttentionSizes sizes(backward.forward);
  for (auto& worker : workers) {
    worker.gemm.trim();
    arena_of(worker, BackwardTiles<T>::bytes(sizes));
  }
  for_parts(
      team, workers, sizes, sizes.batch * sizes.kv_heads,
      [&](FlashAttention::Worker& worker, std::int64_t head) {
        BackwardHead<T>(backward, isa, head / sizes.kv_heads, head % sizes.kv_heads).run(worker);
      });
}

}  // namespace

void FlashAttention::backward(const AttentionBackward& attention) {
  with_type(attention.forward.q.dtype(), [&](auto element) {
    run_backward<decltype(element)>(*team_, workers_, isa_, attention);
  });
}

}  // namespace trireme::device::cpu
