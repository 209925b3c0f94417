// SPDX-License-Identifier: Apache-2.0
// State that a rank holds: which elements it updates, and its buffers as boxes of logical tensors.
#include "state.hpp"

#include "trireme/base/contract.hpp"
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

}  // namespace

const std::string& matrix_name(const model::StageParameters& stage, const optim::Segment& segment) {
  const std::string* name = nullptr;
  each_piece(stage, segment.flat, [&](const model::ShardPiece& piece, layout::FlatRange) {
    name = &stage.parameters()[piece.parameter].tensor.name;
  });
  TRIREME_EXPECT(name != nullptr, "a matrix is a parameter");
  return *name;
}

std::vector<StatePart> Engine::state_parts() {
  // Masters may be the parameters themselves, and the caller may overwrite them.
  parts_->finish_gathers();
  std::vector<StatePart> parts;
  const auto& optimizer = parts_->updates();
  for (const auto& segment : optimizer.segments()) {
    append_parts(parts_->stage, segment, "", optimizer.master(segment), parts);
    for (const auto& state : optimizer.states_of(segment)) {
      append_parts(parts_->stage, segment, state.name + "/", state.values, parts);
    }
    for (const auto& state : optimizer.owner_states_of(segment)) {
      const layout::Shape shape{state.values.dim(0), state.values.dim(1)};
      const auto& name = matrix_name(parts_->stage, segment);
      parts.push_back({state.name + "/" + name, shape, layout::whole(shape), state.values, true});
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

SavedBuckets saved_buckets(const model::StageParameters& stage) {
  SavedBuckets saved;
  const auto pieces = saved_pieces(stage);
  for (std::size_t bucket = 0; bucket < pieces.size(); ++bucket) {
    if (pieces[bucket].empty()) continue;
    auto& buckets = stage.flat().cuts_of_bucket(bucket).empty() ? saved.equal : saved.cut;
    buckets.push_back(bucket);
  }
  return saved;
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
    const int shard = options.mesh.coordinate(layout::Axis::data, options.rank);
    elements += static_cast<std::size_t>(stage.flat().shard_of_bucket(bucket, shard).size()) *
                state_prefixes(options, stage, bucket).size();
  }
  elements += static_cast<std::size_t>(owner_states(options, stage).shard_elements);
  return elements * sizeof(float);
}

std::vector<Tensor> Engine::saved_shards() {
  parts_->finish_gathers();
  const auto& flat = parts_->stage.flat();
  const auto& optimizer = parts_->updates();
  const auto saved = saved_buckets(parts_->stage);
  const int rank = parts_->groups.data->rank();
  // Kinds of state: the masters, and others.
  const auto states_of = [&](std::size_t bucket) {
    // State of this rank's shards alone, or of whole buckets (ownership_of).
    auto shard = parts_->owned_buckets[bucket];
    const auto range = flat.shard_of_bucket(bucket, rank);
    shard.state_begin += range.begin - shard.flat.begin;
    shard.flat = range;
    std::vector<Tensor> states{optimizer.master(shard)};
    for (const auto& state : optimizer.states_of(shard)) states.push_back(state.values);
    return states;
  };
  std::vector<Tensor> shards;
  for (const auto bucket : saved.equal) {
    const auto states = states_of(bucket);
    shards.insert(shards.end(), states.begin(), states.end());
  }
  if (const auto& all = optimizer.owner_states()) {
    const auto count = parts_->options.zero_level == 0 ? all.dim(0) / flat.shards : all.dim(0);
    shards.push_back(all.slice(0, parts_->options.zero_level == 0 ? rank * count : 0, count));
  }
  const auto kinds = saved.cut.empty() ? 0 : states_of(saved.cut.front()).size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (const auto bucket : saved.cut) {
      if (flat.shard_of_bucket(bucket, rank).size() == 0) continue;
      shards.push_back(states_of(bucket)[kind]);
    }
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
  parts_->finish_gathers();
  return engine::parameter_parts(parts_->stage, parts_->flat_parameters, parts_->flat_gradients);
}

}  // namespace trireme::engine
