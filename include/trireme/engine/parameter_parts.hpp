// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace trireme::engine {

/// Parameters of options.rank as an engine with these options holds them: a pure function, also of
/// the ranks of others.
model::StageParameters stage_parameters(const EngineOptions& options);

/// Shard pieces of each bucket that a checkpoint takes from a rank: copies on other tensor-parallel
/// ranks or stages are left out, and with them whole buckets.
std::vector<std::vector<const model::ShardPiece*>> saved_pieces(
    const model::StageParameters& stage);

/// Buckets with saved_pieces(), in the order in which Engine::saved_shards() has their shards: of
/// equal ones bucket by bucket all kinds of state, then, behind owner_states(), of those that are
/// cut otherwise kind by kind all buckets.
struct SavedBuckets {
  std::vector<std::size_t> equal;
  std::vector<std::size_t> cut;
};
SavedBuckets saved_buckets(const model::StageParameters& stage);

/// What stands before a parameter's name in a checkpoint for each kind of state of a bucket's
/// parameters: "" of masters, "adamw.first_moment/", ...
std::vector<std::string> state_prefixes(const EngineOptions& options,
                                        const model::StageParameters& stage, std::size_t bucket);

/// State of matrices that lies whole at their owners (optim::MatrixRule::owner_states), by
/// data-parallel shard: f32 [shards * shard_elements], of which data-parallel rank d saves part d.
struct OwnerStates {
  struct Part {
    std::string name;  ///< "soap.left/layers.0.attention.q.weight"
    layout::Shape shape;
    std::int64_t begin = 0;  ///< in all of it
  };
  std::int64_t shard_elements = 0;
  std::vector<Part> parts;
};

/// What options.rank and the data-parallel ranks beside it own.
OwnerStates owner_states(const EngineOptions& options, const model::StageParameters& stage);

/// Bytes of Engine::saved_shards() on options.rank.
std::size_t saved_bytes(const EngineOptions& options);

/// The shard pieces of a rank's flat buffers, as boxes of logical tensors. `gradients` may be
/// empty.
std::vector<ParameterPart> parameter_parts(const model::StageParameters& stage,
                                           const device::Tensor& parameters,
                                           const device::Tensor& gradients);

}  // namespace trireme::engine
