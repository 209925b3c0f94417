// SPDX-License-Identifier: Apache-2.0
// State that a rank holds: which elements it updates, and its buffers as boxes of logical tensors.
#include "trireme/base/contract.hpp"

#include "parts.hpp"

#include <cstring>
#include <set>

namespace trireme::engine {

using device::Tensor;

namespace {

/// Adds the boxes of tensors that `segment` lies in; `values` holds its elements.
void append_parts(const model::StageParameters& stage, const optim::Segment& segment,
                  const std::string& prefix, const Tensor& values, std::vector<StatePart>& parts) {
  stage.each_piece(segment.flat, [&](const model::ShardPiece& piece, layout::FlatRange range) {
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

std::vector<StatePart> Engine::state_parts() {
  // Masters may be the parameters themselves, and the caller may overwrite them.
  parts_->finish_gathers();
  std::vector<StatePart> parts;
  const auto& optimizer = parts_->updates().state();
  for (const auto& segment : optimizer.segments()) {
    append_parts(parts_->stage, segment, "", optimizer.master(segment), parts);
    for (const auto& state : optimizer.of(segment)) {
      append_parts(parts_->stage, segment, state.name + "/", state.values, parts);
    }
    for (const auto& state : optimizer.owner_states_of(segment)) {
      const layout::Shape shape{state.values.dim(0), state.values.dim(1)};
      const auto& name = parts_->sharding.matrix_name(segment);
      parts.push_back({state.name + "/" + name, shape, layout::whole(shape), state.values, true});
    }
  }
  return parts;
}

std::vector<Tensor> Engine::saved_shards() {
  parts_->finish_gathers();
  const auto& optimizer = parts_->updates().state();
  const auto& sharding = parts_->sharding;
  const auto saved = sharding.saved_buckets();
  // Kinds of state: the masters, and others.
  const auto states_of = [&](std::size_t bucket) {
    // State of this rank's shards alone, or of whole buckets (sharding::Updates).
    auto shard = parts_->own_updates.buckets[bucket];
    const auto range = sharding.counted(bucket);
    shard.state_begin += range.begin - shard.flat.begin;
    shard.flat = range;
    std::vector<Tensor> states{optimizer.master(shard)};
    for (const auto& state : optimizer.of(shard)) states.push_back(state.values);
    return states;
  };
  std::vector<Tensor> shards;
  for (const auto bucket : saved.equal) {
    const auto states = states_of(bucket);
    shards.insert(shards.end(), states.begin(), states.end());
  }
  if (const auto& all = optimizer.owner_states()) {
    const auto own = sharding.saved_owner_states(all.dim(0));
    shards.push_back(all.slice(0, own.begin, own.size()));
  }
  const auto kinds = saved.cut.empty() ? 0 : states_of(saved.cut.front()).size();
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (const auto bucket : saved.cut) {
      if (sharding.counted(bucket).size() == 0) continue;
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
      parts.push_back({tensor.name, tensor.shape, piece.box,
                       parameters ? parameters.slice(0, piece.flat.begin, size) : Tensor{},
                       gradients ? gradients.slice(0, piece.flat.begin, size) : Tensor{},
                       piece.primary});
    }
  }
  return parts;
}

namespace {

/// Hashes the shard pieces of a stage, or of one place of it, in their order. hashes: i32
/// [pieces, 2].
void hash_pieces(const model::StageParameters& stage, const std::optional<model::Place>& only,
                 device::Kernels& kernels, const Tensor& hashes) {
  std::int64_t index = 0;
  for (const auto& fused : stage.fused_parameters()) {
    const auto values = stage.parameter(fused.name).flat();
    for (const auto& piece : fused.pieces) {
      const auto hash = hashes.slice(0, index++, 1).reshape({2});
      if (only && *only != fused.place) continue;
      const auto begin = piece.flat.begin - fused.pieces.front().flat.begin;
      kernels.issue(device::HashBits{values.slice(0, begin, piece.flat.size()), hash});
    }
  }
}

}  // namespace

std::vector<std::uint64_t> Engine::parameter_hashes() {
  auto& parts = *parts_;
  TRIREME_EXPECT(parts.trains(), "only training engines have room for hashes");
  parts.finish_gathers();
  if (parts.gathered) {
    // Places: a table has several units, one for each block of the vocabulary.
    std::set<model::Place> places;
    for (const auto& unit : parts.units->all()) places.insert(unit.place);
    for (const auto& place : places) {
      layers::WeightLease lease(parts.context.weights, place, layers::Pass::forward);
      hash_pieces(parts.stage, place, parts.kernels, parts.hashes);
      lease.end();
    }
  } else {
    hash_pieces(parts.stage, std::nullopt, parts.kernels, parts.hashes);
  }
  device::HostMirror mirror(device());
  const auto words = mirror.of(parts.hashes);
  mirror.fetch();
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(parts.hashes.dim(0)));
  std::memcpy(hashes.data(), words.raw(), words.byte_count());
  return hashes;
}

std::vector<ParameterPart> Engine::parameter_parts() {
  parts_->finish_gathers();
  const auto& sharding = parts_->options.sharding;
  const auto values = sharding.divides_parameters() ? Tensor{} : parts_->flat_parameters;
  const auto gradients = sharding.divides_gradients() ? Tensor{} : parts_->flat_gradients;
  return engine::parameter_parts(parts_->stage, values, gradients);
}

}  // namespace trireme::engine
