// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/mesh.hpp"
#include "trireme/model/stage_parameters.hpp"
#include "trireme/optim/rule.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace trireme::sharding {

/// Settings that decide which rank holds, sums, updates and saves which elements.
struct Options {
  layout::Mesh mesh = layout::Mesh::of(1, 1, 1);
  base::Rank rank{0};
  model::SequenceParallel sequence_parallel = model::SequenceParallel::off;
  /// 0: every replica (layout::replica_axes) has all optimizer state; 1: each has its shard; 2: of
  /// gradients, too; 3: of parameters, too.
  int zero_level = 0;
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  optim::Rule rule;
  /// Which matrices a rule updates whole, where it updates any.
  model::MatrixSelection matrices;
  /// Assignment of these matrices. Without effect where replicas divide no updates.
  ownership::Assignment assignment = ownership::Assignment::padded;
  /// Why it is this one; empty where the configuration says which.
  std::string assignment_reason;

  /// Whether replicas divide updates, and the state that these need, among them.
  bool divides_updates() const { return zero_level > 0; }
  /// Whether each of several ranks holds its shards of parameters alone: a unit's weights are
  /// gathered when a pass reads them (model::BucketBorders).
  bool divides_parameters() const {
    return zero_level > 2 && mesh.degree(layout::replica_axes) > 1;
  }
  /// Whether each unit takes all micro-batches before the next: where parameters are divided and
  /// one stage has all layers. What they add up to is reduced behind the last.
  bool takes_units_in_turn() const {
    return divides_parameters() && mesh.degree(layout::Axis::pipeline) == 1;
  }
  /// Whether gradients are reduced behind each micro-batch, and added up as shards.
  bool reduces_micro_batches() const {
    return zero_level == 2 && mesh.degree(layout::replica_axes) > 1;
  }
  /// Whether each of several ranks holds gradients of its shards alone, beside those of the units
  /// that compute; else all, until its last micro-batch.
  bool divides_gradients() const { return takes_units_in_turn() || reduces_micro_batches(); }
  /// Whether a bucket ends with each unit.
  model::BucketBorders borders() const {
    const bool by_units = divides_parameters() || divides_gradients();
    return by_units ? model::BucketBorders::units : model::BucketBorders::anywhere;
  }
  /// Whether updates are of whole matrices, with owners.
  bool divides_matrices() const {
    return divides_updates() && optim::traits(rule.kind).updates_matrices;
  }
  /// Smallest bucket of gradients, f32.
  std::int64_t bucket_elements() const { return std::max<std::int64_t>(1, bucket_bytes / 4); }
};

}  // namespace trireme::sharding
