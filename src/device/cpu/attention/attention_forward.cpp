// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/attention/attention_tiles.hpp"

#include <cmath>
#include <limits>

namespace trireme::device::cpu {
namespace {

/// Queries that one part of the work takes: enough to be worth copying the keys.
constexpr std::int64_t part_queries = 512;
/// Fewer queries than this make GEMMs that are not worth packing keys for.
constexpr std::int64_t few_queries = 4;

/// Memory of one part.
template <typename T>
struct ForwardTiles {
  ForwardTiles(Arena& arena, const AttentionSizes& sizes)
      : k(take<T>(arena, (sizes.keys + sizes.spare_keys()) * sizes.head_dim)),
        v(take<T>(arena, (sizes.keys + sizes.spare_keys()) * sizes.head_dim)),
        q(take<T>(arena, query_tile * sizes.head_dim)),
        weights(take<T>(arena, query_tile * key_tile)),
        scores(take<float>(arena, query_tile * key_tile)),
        out(take<float>(arena, query_tile * sizes.head_dim)),
        factors(take<float>(arena, key_tile)) {}

  static std::size_t bytes(const AttentionSizes& sizes) {
    auto arena = Arena::measuring(Purpose::workspace);
    const ForwardTiles measured(arena, sizes);
    return arena.used_bytes();
  }

  T* k;
  T* v;
  T* q;
  T* weights;
  float* scores;
  float* out;
  float* factors;
};

/// Forward of one head of one sequence.
template <typename T>
class ForwardHead {
 public:
  ForwardHead(const Attention& attention, Isa isa, std::int64_t sequence, std::int64_t head)
      : attention_(attention),
        sizes_(attention),
        functions_(tables_of(isa).attention.of(T{})),
        isa_(isa),
        sequence_(sequence),
        head_(head),
        q_(attention.q, sequence, head),
        k_(attention.k, sequence, head / sizes_.group()),
        v_(attention.v, sequence, head / sizes_.group()),
        out_(attention.out, sequence, head) {}

  /// Queries [range) by tiles.
  void run(FlashAttention::Worker& worker, Range queries) const {
    const ForwardTiles<T> tiles(arena_of(worker, ForwardTiles<T>::bytes(sizes_)), sizes_);
    const Range keys{sizes_.first_key(sequence_, queries.begin), sizes_.visible(queries.end - 1)};
    gather_keys(k_, keys, sizes_, tiles.k);
    gather_keys(v_, keys, sizes_, tiles.v);
    while (queries.count() > 0) {
      const auto tile = sizes_.first_tile(sequence_, queries);
      run_tile(worker.gemm, tiles, tile, keys.begin);
      queries.begin = tile.end;
    }
  }

  /// One query at a time, keys and values read where they are.
  void run_few(FlashAttention::Worker& worker) const {
    auto& arena = arena_of(worker, few_bytes(sizes_));
    auto* scores = take<float>(arena, sizes_.keys);
    auto* weights = take<float>(arena, sizes_.keys);
    const AttentionMask mask(attention_, isa_, take<float>(arena, sizes_.keys));
    const auto& softmax = tables_of(isa_).attention.f32.softmax;
    for (std::int64_t query = 0; query < sizes_.queries; ++query) {
      const Range keys{sizes_.first_key(sequence_, query), sizes_.visible(query)};
      const auto seen = keys.count();
      SoftmaxState state;
      if (seen > 0) {
        functions_.scores(q_.row(query), {k_.row(keys.begin), seen, sizes_.head_dim, k_.stride},
                          scores);
        softmax(
            {scores, seen, seen, attention_.scale, mask.of(sequence_, head_, query, keys), weights},
            state);
      }
      const float factor = seen > 0 ? 1.0F / state.sum : 0.0F;
      functions_.weighted_sum(weights, {v_.row(keys.begin), seen, sizes_.head_dim, v_.stride},
                              factor, out_.row(query));
      keep_lse(query, seen, state);
    }
  }

  static std::size_t few_bytes(const AttentionSizes& sizes) {
    auto arena = Arena::measuring(Purpose::workspace);
    for (int i = 0; i < 3; ++i) take<float>(arena, sizes.keys);
    return arena.used_bytes();
  }

 private:
  /// Queries that see the same first key; `gathered` is the first key of the tiles.
  void run_tile(BlockGemm& gemm, const ForwardTiles<T>& tiles, Range queries,
                std::int64_t gathered) const {
    const auto width = sizes_.head_dim;
    const auto rows = sizes_.tile_rows(queries.count());
    SoftmaxState states[query_tile];
    gather_queries(q_, queries, sizes_, tiles.q);
    std::fill_n(tiles.out, rows * width, 0.0F);
    const auto keys = sizes_.visible(queries.end - 1);
    for (auto key = sizes_.first_key(sequence_, queries.begin); key < keys; key += key_tile) {
      const auto columns = sizes_.tile_columns(std::min(keys - key, key_tile));
      const auto place = (key - gathered) * width;
      gemm.run(scores_gemm<T>(rows, columns, width), {tiles.q, tiles.k + place, tiles.scores});
      weigh(tiles, queries, {key, key + columns}, states);
      gemm.run(adding_gemm<T>(rows, width, columns), {tiles.weights, tiles.v + place, tiles.out});
    }
    for (auto query = queries.begin; query < queries.end; ++query) {
      const auto row = query - queries.begin;
      const auto visible = sizes_.visible(query);
      const float factor = visible > 0 ? 1.0F / states[row].sum : 0.0F;
      functions_.scaled(tiles.out + row * width, width, factor, out_.row(query));
      keep_lse(query, visible, states[row]);
    }
  }

  /// Scores become weights, and what was summed before is brought to the new largest scores.
  void weigh(const ForwardTiles<T>& tiles, Range queries, Range keys, SoftmaxState* states) const {
    const auto width = sizes_.head_dim;
    const AttentionMask mask(attention_, isa_, tiles.factors);
    const bool is_first = keys.begin == sizes_.first_key(sequence_, queries.begin);
    clear_spare_rows(tiles.weights, queries, sizes_, keys.count());
    for (auto query = queries.begin; query < queries.end; ++query) {
      const auto row = query - queries.begin;
      const auto seen =
          std::clamp<std::int64_t>(sizes_.visible(query) - keys.begin, 0, keys.count());
      const float rescale = functions_.softmax(
          {tiles.scores + row * keys.count(), seen, keys.count(), attention_.scale,
           mask.of(sequence_, head_, query, {keys.begin, keys.begin + seen}),
           tiles.weights + row * keys.count()},
          states[row]);
      auto* out = tiles.out + row * width;
      if (!is_first && rescale != 1.0F) {
        tables_of(isa_).attention.f32.scaled(out, width, rescale, out);
      }
    }
  }

  void keep_lse(std::int64_t query, std::int64_t visible, const SoftmaxState& state) const {
    if (!attention_.lse) return;
    const auto place = (sequence_ * sizes_.heads + head_) * sizes_.queries + query;
    // A query that sees no key attends to nothing.
    attention_.lse.f32()[place] =
        visible > 0 ? state.largest + std::log(state.sum) : -std::numeric_limits<float>::infinity();
  }

  const Attention& attention_;
  AttentionSizes sizes_;
  const AttentionFunctions<T>& functions_;
  Isa isa_;
  std::int64_t sequence_;
  std::int64_t head_;
  HeadView<T> q_;
  HeadView<T> k_;
  HeadView<T> v_;
  HeadView<T> out_;
};

template <typename T>
void run_forward(Team& team, std::vector<FlashAttention::Worker>& workers, Isa isa,
                 const Attention& attention) {
  const AttentionSizes sizes(attention);
  const bool few = sizes.queries < few_queries;
  const auto parts = few ? 1 : (sizes.queries + part_queries - 1) / part_queries;
  const auto bytes = few ? ForwardHead<T>::few_bytes(sizes) : ForwardTiles<T>::bytes(sizes);
  for (auto& worker : workers) {
    worker.gemm.trim();
    arena_of(worker, bytes);
  }
  const auto heads = sizes.batch * sizes.heads;
  for_parts(team, workers, sizes, heads * parts,
            [&](FlashAttention::Worker& worker, std::int64_t index) {
              // The last queries see the most keys: they go first, so that the work ends evenly.
              const auto part = parts - 1 - index / heads;
              const auto head = index % heads;
              const ForwardHead<T> one(attention, isa, head / sizes.heads, head % sizes.heads);
              if (few) {
                one.run_few(worker);
              } else {
                one.run(worker,
                        {part * part_queries, std::min(sizes.queries, (part + 1) * part_queries)});
              }
            });
}

}  // namespace

FlashAttention::FlashAttention(const Context& context) : team_(context.team), isa_(context.isa) {
  for (int thread = 0; thread < team_->size(); ++thread) {
    workers_.push_back({BlockGemm(bf16_gemm_of(isa_)), Arena::host(Purpose::workspace, 0)});
  }
}

void FlashAttention::forward(const Attention& attention) {
  if (attention.q.element_count() == 0) return;
  with_type(attention.q.dtype(), [&](auto element) {
    run_forward<decltype(element)>(*team_, workers_, isa_, attention);
  });
}

std::size_t FlashAttention::workspace_bytes() const {
  std::size_t total = 0;
  for (const auto& worker : workers_) {
    total += worker.gemm.workspace_bytes() + worker.arena.capacity_bytes();
  }
  return total;
}

}  // namespace trireme::device::cpu
