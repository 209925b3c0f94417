// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/attention/cudnn/attention_parts.hpp"

#include <algorithm>
#include <initializer_list>

namespace trireme::device::cudnn {
namespace {

using Terms = BackwardPart::Terms;

constexpr std::int64_t f32_bytes = 4;
constexpr std::int64_t bf16_bytes = 2;
/// Tiles of the kernels that cuDNN 9 has for Ampere and Hopper.
constexpr std::int64_t tile_queries = 64;
constexpr std::int64_t tile_keys = 128;
/// Blocks of queries begin where tiles do.
constexpr std::int64_t block_queries = 128;

std::int64_t rounded(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::size_t place_of(std::int64_t bytes) {
  return static_cast<std::size_t>(rounded(bytes, 256));
}

/// Upper bound of the workspace of plans, which unit.device/cudnn_plans checks: counters; with
/// grouped heads dk and dv of every query head; with `repeatable` the gradient of the scores, whole
/// tiles of it; with `fastest`, on Ampere, dq in fp32 a second time.
std::int64_t library_bytes(const BackwardPart& part, std::int64_t group, std::int64_t head_dim,
                           AttentionBits bits) {
  constexpr std::int64_t counters = 4096;
  const auto matrices = part.sequences * part.kv_heads * part.of_group;
  auto bytes = counters;
  if (group > 1 && part.of_group > 1) {
    bytes += 2 * bf16_bytes * matrices * part.keys * head_dim;
  }
  const auto queries = rounded(part.queries, tile_queries);
  switch (bits) {
    case AttentionBits::fastest:
      return bytes + f32_bytes * matrices * queries * head_dim;
    case AttentionBits::repeatable:
      break;
  }
  return bytes + bf16_bytes * matrices * queries * rounded(part.keys, tile_keys);
}

}  // namespace

BackwardBytes backward_bytes(const AttentionExtents& whole, const BackwardPart& part,
                             AttentionBits bits) {
  const auto group = whole.heads() / whole.kv_heads();
  const auto rows = part.sequences * part.kv_heads * part.of_group * part.queries;
  BackwardBytes bytes;
  if (part.terms != Terms::all) {
    bytes.key_sums = place_of(f32_bytes * whole.keys() * whole.head_dim());
    bytes.key_terms = place_of(f32_bytes * part.keys * whole.head_dim());
    bytes.lse = place_of(f32_bytes * rows);
  }
  bytes.row_sums = place_of(f32_bytes * rows);
  if (bits == AttentionBits::fastest) {
    bytes.dq_sums = place_of(f32_bytes * rows * whole.head_dim());
  }
  bytes.library = place_of(library_bytes(part, group, whole.head_dim(), bits));
  return bytes;
}

BackwardBytes BackwardParts::bytes(const BackwardPart& part) const {
  return backward_bytes(whole_, part, bits_);
}

BackwardParts::BackwardParts(const AttentionExtents& whole, AttentionBits bits,
                             std::size_t most_bytes)
    : whole_(whole), bits_(bits), most_bytes_(most_bytes) {
  const BackwardPart one{.sequences = 1,
                         .kv_heads = whole.kv_heads(),
                         .of_group = group(),
                         .queries = whole.queries(),
                         .keys = whole.keys()};
  const auto most = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(most_bytes / bytes(one).total()), 1, whole.batch());
  // Runs are as even as can be: a short last part would leave a GPU half empty.
  const auto runs = (whole.batch() + most - 1) / most;
  cut_heads((whole.batch() + runs - 1) / runs);
  for (const auto& part : list_) {
    workspace_bytes_ = std::max(workspace_bytes_, bytes(part).total());
  }
}

void BackwardParts::cut_heads(std::int64_t sequences) {
  BackwardPart part{.sequences = sequences,
                    .kv_heads = whole_.kv_heads(),
                    .of_group = group(),
                    .queries = whole_.queries(),
                    .keys = whole_.keys()};
  while (part.kv_heads > 1 && bytes(part).total() > most_bytes_) {
    part.kv_heads = (part.kv_heads + 1) / 2;
  }
  if (bytes(part).total() > most_bytes_) return cut_queries();
  for (std::int64_t sequence = 0; sequence < whole_.batch(); sequence += sequences) {
    for (std::int64_t head = 0; head < whole_.kv_heads(); head += part.kv_heads) {
      auto& each = list_.emplace_back(part);
      each.first_sequence = sequence;
      each.sequences = std::min(sequences, whole_.batch() - sequence);
      each.first_kv_head = head;
      each.kv_heads = std::min(part.kv_heads, whole_.kv_heads() - head);
    }
  }
}

BackwardPart BackwardParts::largest_block() const {
  // The library has no fp32 sum over the heads of a group.
  BackwardPart block{.sequences = 1,
                     .kv_heads = 1,
                     .of_group = 1,
                     .queries = block_queries,
                     .keys = whole_.keys(),
                     .terms = Terms::some};
  for (auto longer = block; longer.queries < whole_.queries(); block = longer) {
    longer.queries += block_queries;
    if (bytes(longer).total() > most_bytes_) break;
  }
  const auto blocks = (whole_.queries() + block.queries - 1) / block.queries;
  block.queries = rounded((whole_.queries() + blocks - 1) / blocks, block_queries);
  return block;
}

void BackwardParts::cut_queries() {
  const auto block = largest_block();
  const auto seen_by_all = whole_.keys() - whole_.queries();
  for (std::int64_t sequence = 0; sequence < whole_.batch(); ++sequence) {
    for (std::int64_t head = 0; head < whole_.kv_heads(); ++head) {
      for (std::int64_t of_group = 0; of_group < group(); ++of_group) {
        for (std::int64_t query = 0; query < whole_.queries(); query += block.queries) {
          auto& each = list_.emplace_back(block);
          each.first_sequence = sequence;
          each.first_kv_head = head;
          each.first_of_group = of_group;
          each.first_query = query;
          each.queries = std::min(block.queries, whole_.queries() - query);
          if (whole_.causal) each.keys = seen_by_all + query + each.queries;
        }
      }
    }
  }
}

}  // namespace trireme::device::cudnn
