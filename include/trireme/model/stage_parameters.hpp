// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/tensor.hpp"
#include "trireme/layout/flat.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/model/parameters.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::model {

enum class SequenceParallel { off, on };

/// The part of one logical parameter that a rank holds.
struct ShardPiece {
  /// Index into parameters().
  std::size_t parameter = 0;
  layout::Box box;
  /// Range of the box, row-major, in the rank's flat buffers.
  layout::FlatRange flat{};
  /// Exactly one rank of a data-parallel replica is primary for a box: global norms count it.
  bool primary = true;
  /// The gradient is one of several terms until tensor-parallel ranks have added theirs; or several
  /// of them hold the box and computed its gradient in whole, and take that of the first, so that
  /// their copies stay alike.
  bool partial = false;
  /// Whether this rank's gradient is one of the terms.
  bool contributes = true;
  /// Number of different boxes of the parameter along tp, and the index of this one.
  int parts = 1;
  int part = 0;
};

/// Shard pieces that lie row after row and act as one matrix or vector: q, k and v, say, or one
/// parameter alone.
struct FusedParameter {
  std::string name;
  Place place;
  std::int64_t rows = 0;
  /// 0 for a vector.
  std::int64_t columns = 0;
  std::vector<ShardPiece> pieces;
  bool decays = true;
  /// The gradient needs more than data-parallel reduction: terms of tensor-parallel ranks or of
  /// another stage are added at the end of a step (see engine). In a deferred bucket.
  bool deferred = false;
  /// Also held by another stage: tied embeddings.
  bool tied = false;
  /// Its pieces are matrices that a rule updates whole, by an owner.
  bool owned = false;

  std::int64_t element_count() const { return rows * (columns == 0 ? 1 : columns); }
};

/// The layers that one rank holds: [chunk] of its stage, in model order.
struct StagePlace {
  layout::Mesh mesh;
  base::Rank rank;
  std::vector<layout::LayerRange> chunks;
  SequenceParallel sequence_parallel = SequenceParallel::off;
  layout::PlacementKind placement_kind = layout::PlacementKind::round_robin;

  layout::Placement placement() const {
    return {mesh.degree(layout::Axis::pipeline), static_cast<int>(chunks.size()), placement_kind};
  }
};

/// Owners of the matrices that a rule updates whole, and which these are.
struct MatrixOwning {
  /// Cost of an update of a matrix for its owner; without it no matrix is owned.
  CostOfMatrix cost{};
  MatrixSelection selection{};
  ownership::Assignment assignment = ownership::Assignment::padded;
};

/// Fused parameters of a rank and their places in its flat buffers: in the order in which backward
/// completes their gradients, so that early buckets can be reduced while later layers still
/// compute; deferred ones are in buckets of their own at the end, and a tied table behind them in
/// one of its own (docs/decisions/0023). Matrices that a rule updates whole are in buckets of their
/// own before the others, each in one shard, as a plan of ownership::Assignment places them; q, k,
/// v and gate, up lie behind each other, because their product reads them as one matrix, but may
/// have different owners.
class StageParameters {
 public:
  StageParameters(const ModelConfig& config, const StagePlace& place, std::int64_t bucket_elements,
                  const MatrixOwning& owning = {}, BucketBorders borders = BucketBorders::anywhere);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Ranks that share the matrix of a shard piece; null where it has one owner.
  const ownership::MatrixOwner* sharing_of(const ShardPiece& piece) const;
  /// Equal blocks of rows of an owned matrix that are matrices of their own to the rule.
  std::int64_t blocks_of(const Parameter& parameter) const;
  /// Turn of the renewal of an owned matrix (renewal_turns()).
  std::int64_t renewal_turn(const ShardPiece& piece) const {
    return renewal_turns_[piece.parameter];
  }
  const std::vector<FusedParameter>& fused_parameters() const { return fused_parameters_; }
  const layout::FlatLayout& flat() const { return flat_; }
  /// Buckets from this one on hold the tied table only: none, or one.
  std::size_t first_tied_bucket() const { return first_tied_bucket_; }
  /// Whether all of a bucket's tensors are matrices with owners; otherwise none is.
  bool is_owned(std::size_t bucket) const { return owned_buckets_[bucket]; }
  /// Elements that are parameters, padding left out.
  std::int64_t element_count() const;
  /// Calls act(shard piece, common part) for each shard piece that has elements of a range of the
  /// flat buffers, in the order of the fused parameters.
  template <typename Act>
  void each_piece(layout::FlatRange range, const Act& act) const {
    for (const auto index : fused_in(range)) {
      for (const auto& piece : fused_parameters_[index].pieces) {
        const layout::FlatRange common{std::max(range.begin, piece.flat.begin),
                                       std::min(range.end, piece.flat.end)};
        if (common.begin < common.end) act(piece, common);
      }
    }
  }

  /// Gives the views below something to look at; either may be empty.
  void bind(const device::Tensor& parameters, const device::Tensor& gradients);
  /// Whole buckets of the flat buffers that lie in memory of their own.
  struct Region {
    layout::FlatRange range{};
    device::Tensor parameters;
    device::Tensor gradients;
  };
  /// The same for buffers of several regions, which together have all buckets.
  void bind(std::vector<Region> regions);
  bool holds(std::string_view name) const;
  /// [rows, columns], or [rows] for a vector. Empty for a name that this model does not have.
  device::Tensor parameter(std::string_view name) const;
  device::Tensor gradient(std::string_view name) const;

 private:
  /// Fused parameters, ascending, of the buckets that a range touches.
  std::vector<std::size_t> fused_in(layout::FlatRange range) const;
  void collect(const StagePlace& place, const Place& part, bool tied);
  void order_and_place(const layout::Mesh& mesh, std::int64_t bucket_elements,
                       const MatrixOwning& owning);
  layout::FlatLayout owned_layout(std::span<const FusedParameter> matrices,
                                  const layout::Mesh& mesh, std::int64_t bucket_elements,
                                  const MatrixOwning& owning);
  device::Tensor view(std::string_view name, device::Tensor Region::*kind) const;

  ModelConfig config_;
  MatrixSelection selection_;
  BucketBorders borders_;
  std::vector<Parameter> parameters_;
  std::vector<std::int64_t> renewal_turns_;  // [parameter]
  std::vector<FusedParameter> fused_parameters_;
  layout::FlatLayout flat_;
  std::vector<bool> owned_buckets_;                        // [bucket]
  std::vector<std::vector<std::size_t>> fused_of_bucket_;  // [bucket]: ascending
  std::map<std::size_t, ownership::MatrixOwner> shared_;   // by parameter
  std::size_t first_tied_bucket_ = 0;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::vector<Region> regions_;
};

/// Writes the initial values of elements [range.begin, range.end) of the rank's flat buffer: a
/// pure function of seed, parameter name and global element index, whatever the layout.
/// out: f32 [range.size()]. Padding stays as it is.
void initialise(const StageParameters& stage, std::uint64_t seed, layout::FlatRange range,
                const device::Tensor& out);

}  // namespace trireme::model
