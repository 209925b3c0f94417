// SPDX-License-Identifier: Apache-2.0
// State that a rank holds: which elements it updates, and its buffers as boxes of logical tensors.
#include "state.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/engine/parameter_parts.hpp"

#include "parts.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::engine {

using device::Tensor;

namespace {

/// Calls act(piece, flat range inside it) for every shard piece that meets the range.
template <typename Act>
void each_piece(const model::StageParameters& stage, layout::FlatRange range, const Act& act) {
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      const auto begin = std::max(range.begin, piece.flat.begin);
      const auto end = std::min(range.end, piece.flat.end);
      if (begin < end) act(piece, layout::FlatRange{begin, end});
    }
  }
}

/// Adds the boxes of tensors that `segment` lies in; `values` holds its elements.
void append_parts(const model::StageParameters& stage, const optim::Segment& segment,
                  const std::string& prefix, const Tensor& values, std::vector<StatePart>& parts) {
  each_piece(stage, segment.flat, [&](const model::ShardPiece& piece, layout::FlatRange range) {
    const auto& tensor = stage.parameters()[piece.parameter].tensor;
    auto begin = range.begin - segment.flat.begin;
    for (const auto& box : layout::boxes_of_flat_range(piece.box, range.begin - piece.flat.begin,
                                                       range.end - piece.flat.begin)) {
      const auto count = layout::element_count(box);
      parts.push_back(
          {prefix + tensor.name, tensor.shape, box, values.slice(0, begin, count), piece.primary});
      begin += count;
    }
  });
}

/// Place, in the tensor of a shard piece, of the elements from `begin` of the flat buffer on.
device::StochasticRounding place_in_tensor(const model::StageParameters& stage,
                                           const model::ShardPiece& piece, std::int64_t begin) {
  const auto& tensor = stage.parameters()[piece.parameter].tensor;
  const auto& [offset, length] = piece.box;
  TRIREME_EXPECT(length.size() == 1 || length.size() == 2, "parameters are vectors and matrices");
  device::StochasticRounding place;
  place.stream = base::stream_of(tensor.name);
  place.begin = begin - piece.flat.begin;
  place.width = length.back();
  place.stride = tensor.shape.back();
  place.first = length.size() == 1 ? offset[0] : offset[0] * place.stride + offset[1];
  return place;
}

class Collector {
 public:
  Collector(const EngineOptions& options, const model::StageParameters& stage)
      : stage_(stage), mesh_(options.mesh), rank_(options.rank), rounding_(options.rule.rounding) {}

  void add(layout::FlatRange owned, optim::Content content) {
    auto& size =
        content == optim::Content::matrix ? ownership_.sizes.matrices : ownership_.sizes.elements;
    ownership_.buckets.push_back({.flat = owned, .state_begin = size, .content = content});
    for (const auto& fused : stage_.fused_parameters()) {
      const bool whole =
          content == optim::Content::elements && rounding_ == optim::ParameterRounding::nearest;
      if (whole) {
        add_run({fused.pieces.front().flat.begin, fused.pieces.back().flat.end}, fused);
        continue;
      }
      // A run of one tensor each.
      for (const auto& piece : fused.pieces) add_piece(piece, fused);
    }
    size += owned.size();
  }
  Ownership take() { return std::move(ownership_); }

 private:
  /// True when the last bucket shares a run, which is the last segment then.
  bool add_run(layout::FlatRange run, const model::FusedParameter& fused) {
    const auto& bucket = ownership_.buckets.back();
    const auto begin = std::max(bucket.flat.begin, run.begin);
    const auto end = std::min(bucket.flat.end, run.end);
    if (begin >= end) return false;
    const auto state_begin = bucket.state_begin + begin - bucket.flat.begin;
    ownership_.segments.push_back({.flat = {begin, end},
                                   .state_begin = state_begin,
                                   .decays = fused.decays,
                                   .content = bucket.content});
    return true;
  }
  void add_piece(const model::ShardPiece& piece, const model::FusedParameter& fused) {
    if (!add_run(piece.flat, fused)) return;
    auto& segment = ownership_.segments.back();
    segment.place = place_in_tensor(stage_, piece, segment.flat.begin);
    if (segment.content == optim::Content::elements) return;
    const auto& shape = stage_.parameters()[piece.parameter].tensor.shape;
    segment.shape = {shape[0], shape[1]};
    TRIREME_EXPECT(segment.flat == piece.flat, "an owner has all that its rank holds of a matrix");
    if (mesh_.degree(layout::Axis::tensor) == 1) return;
    for (const auto rank : mesh_.group(layout::Axis::tensor, rank_)) {
      segment.parts.push_back(
          layout::shard_box(stage_.parameters()[piece.parameter].tensor, mesh_, rank));
    }
  }

  const model::StageParameters& stage_;
  const layout::Mesh& mesh_;
  base::Rank rank_;
  optim::ParameterRounding rounding_;
  Ownership ownership_;
};

}  // namespace

namespace {

optim::Content content_of(const model::StageParameters& stage, std::size_t bucket) {
  return stage.is_owned(bucket) ? optim::Content::matrix : optim::Content::elements;
}

}  // namespace

Ownership ownership_of(const EngineOptions& options, const model::StageParameters& stage,
                       int data_rank) {
  Collector collector(options, stage);
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    collector.add(options.zero_level == 0 ? stage.flat().buckets[bucket]
                                          : stage.flat().shard_of_bucket(bucket, data_rank),
                  content_of(stage, bucket));
  }
  return collector.take();
}

std::vector<StatePart> Engine::state_parts() {
  std::vector<StatePart> parts;
  const auto& optimizer = parts_->updates();
  for (const auto& segment : optimizer.segments()) {
    append_parts(parts_->stage, segment, "", optimizer.master(segment), parts);
    for (const auto& state : optimizer.states_of(segment)) {
      append_parts(parts_->stage, segment, state.name + "/", state.values, parts);
    }
  }
  return parts;
}

std::vector<std::vector<const model::ShardPiece*>> saved_pieces(
    const model::StageParameters& stage) {
  const auto& buckets = stage.flat().buckets;
  std::vector<std::vector<const model::ShardPiece*>> pieces(buckets.size());
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      if (!piece.primary || piece.flat.size() == 0) continue;
      const auto bucket =
          std::partition_point(buckets.begin(), buckets.end(),
                               [&](const auto& each) { return each.end <= piece.flat.begin; });
      pieces[static_cast<std::size_t>(bucket - buckets.begin())].push_back(&piece);
    }
  }
  return pieces;
}

std::vector<std::string> state_prefixes(const EngineOptions& options,
                                        const model::StageParameters& stage, std::size_t bucket) {
  std::vector<std::string> prefixes{""};
  for (const auto& name : optim::state_names(options.rule, content_of(stage, bucket))) {
    prefixes.push_back(name + "/");
  }
  return prefixes;
}

std::size_t saved_bytes(const EngineOptions& options) {
  const auto stage = stage_parameters(options);
  const auto pieces = saved_pieces(stage);
  std::size_t elements = 0;
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    elements += static_cast<std::size_t>(stage.flat().shard_of_bucket(bucket, 0).size()) *
                state_prefixes(options, stage, bucket).size();
  }
  return elements * sizeof(float);
}

std::vector<Tensor> Engine::saved_shards() {
  const auto& flat = parts_->stage.flat();
  const auto& optimizer = parts_->updates();
  const auto pieces = saved_pieces(parts_->stage);
  const int rank = parts_->groups.data->rank();
  std::vector<Tensor> shards;
  for (std::size_t bucket = 0; bucket < flat.buckets.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    // State of this rank's shards alone, or of whole buckets (ownership_of).
    auto shard = parts_->owned_buckets[bucket];
    const auto range = flat.shard_of_bucket(bucket, rank);
    shard.state_begin += range.begin - shard.flat.begin;
    shard.flat = range;
    shards.push_back(optimizer.master(shard));
    for (const auto& state : optimizer.states_of(shard)) shards.push_back(state.values);
  }
  return shards;
}

std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const Tensor& parameters, const Tensor& gradients) {
  std::vector<ParameterPart> parts;
  for (const auto& fused : stage.fused_parameters()) {
    for (const auto& piece : fused.pieces) {
      const auto& tensor = stage.parameters()[piece.parameter].tensor;
      const auto size = piece.flat.size();
      parts.push_back(
          {tensor.name, tensor.shape, piece.box, parameters.slice(0, piece.flat.begin, size),
           gradients ? gradients.slice(0, piece.flat.begin, size) : Tensor{}, piece.primary});
    }
  }
  return parts;
}

std::vector<std::uint64_t> Engine::parameter_hashes() {
  auto& parts = *parts_;
  TRIREME_EXPECT(parts.trains(), "only training engines have room for hashes");
  std::int64_t index = 0;
  for (const auto& part : parameter_parts()) {
    const auto hash = parts.hashes.slice(0, index++, 1).reshape({2});
    parts.kernels.issue(device::HashBits{part.values, hash});
  }
  device::HostMirror mirror(device());
  const auto words = mirror.of(parts.hashes);
  mirror.fetch();
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(index));
  std::memcpy(hashes.data(), words.raw(), words.byte_count());
  return hashes;
}

std::vector<ParameterPart> Engine::parameter_parts() {
  return engine::parameter_parts(parts_->stage, parts_->flat_parameters, parts_->flat_gradients);
}

}  // namespace trireme::engine
