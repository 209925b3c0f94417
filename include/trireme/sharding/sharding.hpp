// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/flat.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/optim/state.hpp"
#include "trireme/sharding/options.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// Who holds what: which elements and matrices of a model a rank holds, of which it needs the sum
/// of gradients, which it updates and which it saves.
namespace trireme::sharding {

/// Elements and matrices that a rank updates. Tensor-parallel ranks divide the matrices in a
/// replica's shards by their work, at every ZeRO level.
struct Updates {
  std::vector<optim::Segment> segments;
  optim::StateSizes sizes;
  /// [bucket]: all that the rank updates of it, as a run of state.
  std::vector<optim::Segment> buckets;
};

/// Buckets of which a checkpoint takes something, in the order in which Engine::saved_shards() has
/// their shards: of equal ones bucket by bucket all kinds of state, then, behind owner_states(), of
/// those that are cut otherwise kind by kind all buckets.
struct SavedBuckets {
  std::vector<std::size_t> equal;
  std::vector<std::size_t> cut;
};

/// State of matrices that lies whole at their owners (optim::MatrixRule::owner_states), by
/// shard: f32 [shards * shard_elements], of which replica d saves part d.
struct OwnerStates {
  struct Part {
    std::string name;  ///< "soap.left/layers.0.attention.q.weight"
    layout::Shape shape;
    std::int64_t begin = 0;  ///< in all of it
  };
  std::int64_t shard_elements = 0;
  std::vector<Part> parts;
};

/// Division of one pipeline stage's parameters, gradients and optimizer state among its ranks, as
/// one of them sees it. A pure function of its arguments, also of the ranks of others.
class Sharding {
 public:
  /// `layers`: those of each chunk, [stage][chunk], placed by `placement`. `products`: the type in
  /// which rules multiply matrices, which decides what these cost.
  Sharding(const model::ModelConfig& model, const Options& options,
           std::vector<std::vector<layout::LayerRange>> layers, layout::PlacementKind placement,
           device::DType products);
  /// The same division as another rank sees it.
  Sharding seen_by(base::Rank rank) const;

  const Options& options() const { return options_; }
  /// The rank's number among those that hold the same parameters.
  int replica() const { return options_.mesh.coordinate(layout::replica_axes, options_.rank); }
  /// [chunk]: layers of the rank's stage.
  const std::vector<layout::LayerRange>& chunks() const;
  /// Parameters of the stage and their places in the rank's flat buffers.
  const model::StageParameters& stage() const { return stage_; }
  model::StageParameters& stage() { return stage_; }

  bool divides_updates() const { return options_.divides_updates(); }
  bool divides_parameters() const { return options_.divides_parameters(); }
  /// Elements of a bucket whose gradients the rank needs summed, whose state it has and which it
  /// updates.
  layout::FlatRange updated(std::size_t bucket) const;
  /// Elements of a bucket that the rank alone of its replicas counts and saves, whoever
  /// updates them.
  layout::FlatRange counted(std::size_t bucket) const;
  /// All updates of the rank.
  Updates updates() const { return updates_of(replica()); }
  /// Those of another replica.
  Updates updates_of(int replica) const;
  /// [replica]: the first whose step needs the same memory. They differ where owners of
  /// whole matrices divide state among them.
  std::vector<int> alike_shards() const;

  /// Shard pieces of each bucket that a checkpoint takes from the rank: copies on other
  /// tensor-parallel ranks or stages are left out, and with them whole buckets.
  std::vector<std::vector<const model::ShardPiece*>> saved_pieces() const;
  SavedBuckets saved_buckets() const;
  /// Prefix of a parameter's name in a checkpoint for each kind of state of a bucket's parameters:
  /// "" of masters, "adamw.first_moment/", ...
  std::vector<std::string> state_prefixes(std::size_t bucket) const;
  /// Those of the rank and its replicas.
  OwnerStates owner_states() const;
  /// Part that the rank saves of its own memory of such states, which has so many elements.
  layout::FlatRange saved_owner_states(std::int64_t elements) const;
  /// Bytes of Engine::saved_shards().
  std::size_t saved_bytes() const;
  /// Name of the parameter that a segment of a matrix is of.
  const std::string& matrix_name(const optim::Segment& segment) const;

 private:
  model::ModelConfig model_;
  Options options_;
  std::vector<std::vector<layout::LayerRange>> layers_;
  layout::PlacementKind placement_;
  device::DType products_;
  model::StageParameters stage_;
};

}  // namespace trireme::sharding
