// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/assignment.hpp"
#include "trireme/layout/flat.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Who updates which matrix. A rule such as Muon needs matrices whole, and data-parallel ranks
/// divide the optimizer's state among them: so each matrix gets an owner, such that all ranks have
/// about as much to compute. Plans are pure functions of their arguments.
namespace trireme::ownership {

using layout::Assignment;
using layout::name;
inline constexpr Assignment all_assignments[] = {Assignment::contiguous, Assignment::padded,
                                                 Assignment::shared};
/// None for a name that no assignment has.
std::optional<Assignment> assignment(std::string_view name);

/// A parameter that has an owner.
struct OwnedTensor {
  std::string name;
  MatrixShape shape;
  /// FLOPs of one update of the whole matrix by the rule. 0: elements are updated one by one
  /// (AdamW), so the tensor may be cut anywhere.
  double flops = 0;
  /// Not possible() for a rule that cannot share a matrix.
  SplitCost split;
  /// Part of `flops`, which are a mean over updates, that comes in single ones: of each of the
  /// matrices that the tensor is made of.
  std::vector<Renewal> renewals;
  /// Elements that one tensor-parallel rank holds of it (at most, where they hold different
  /// numbers).
  std::int64_t held_elements = 0;
  /// A bucket ends in front of it, and holds all that came before: gradients from here on are
  /// reduced otherwise (deferred and tied buckets).
  bool begins_bucket = false;
  /// Lies right behind the tensor before it in the buffer, whoever owns the two: products read q, k
  /// and v, or gate and up, as one matrix.
  bool joined = false;

  bool is_matrix() const { return flops > 0; }
  bool operator==(const OwnedTensor&) const = default;
};

/// Order of the matrices in a bucket of `contiguous`.
enum class BucketOrder {
  by_owner,
  /// Buckets are cut between matrices by work done so far (Wang et al. 2026, Canzona,
  /// alpha-balanced).
  of_backward
};

struct PlanOptions {
  /// Degrees. Rank numbers below are data_coordinate * tensor + tensor_coordinate.
  int data = 1;
  int tensor = 1;
  std::int64_t bucket_elements = std::int64_t{40} << 20;  ///< smallest bucket
  /// Padding per element above which equal shards have fewer, larger buckets.
  double most_padding = 0.03;
  /// Pieces begin at multiples of so many elements.
  std::int64_t alignment = 64;
  /// Smallest number of columns of a matrix that a rank takes, where the matrix has enough.
  std::int64_t least_columns = 64;
  BucketOrder order = BucketOrder::by_owner;
  /// Weight of the balance in BucketOrder::of_backward: 1 balances work over all buckets, 0 in each
  /// bucket alone.
  double alpha = 1;
  /// Largest memory of one owner's matrices in a micro-group, at four bytes an element.
  std::int64_t group_bytes = std::int64_t{1} << 30;

  bool operator==(const PlanOptions&) const = default;
};

/// Columns [begin, end) of a matrix, along its longer side, and the rank that computes them.
struct ColumnRange {
  int rank = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const ColumnRange&) const = default;
};

struct MatrixOwner {
  /// Index into the tensors.
  std::size_t tensor = 0;
  /// Tile the longer side in ascending order; one range: the matrix has one owner.
  std::vector<ColumnRange> ranges;
  /// [range]: of a shared matrix, without tensor parallelism, the rows that its rank holds.
  std::vector<layout::FlatRange> rows = {};
  /// Rank of each piece of [n, n] work of a shared matrix (SplitCost::square).
  std::vector<int> square_ranks;
  /// With tensor parallelism: position among its data-parallel rank's exchanges. Matrices of one
  /// micro-group go to their owners in one all-to-all and come back in another.
  int micro_group = 0;

  bool is_shared() const { return !square_ranks.empty(); }
  bool operator==(const MatrixOwner&) const = default;
};

/// Columns along the longer side of a matrix that the rank computes which holds these of its rows:
/// the same part of it.
layout::FlatRange slice_of_rows(const MatrixShape& shape, const layout::FlatRange& rows);

/// Elements [begin, end) of what a rank holds of a tensor, and their place in the flat buffer.
/// Without tensor parallelism those of a shared matrix are whole rows.
struct OwnedPiece {
  std::size_t tensor = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t flat_begin = 0;
  bool operator==(const OwnedPiece&) const = default;
};

struct PlannedBucket {
  layout::FlatRange flat{};
  /// Shard d is [cuts[d], cuts[d + 1]) of the flat buffer.
  std::vector<std::int64_t> cuts;
  bool operator==(const PlannedBucket&) const = default;
};

/// Owners of all matrices, and the flat buffer of a tensor-parallel rank in which reduce-scatter
/// brings to each owner what it updates.
struct Plan {
  Assignment assignment = Assignment::padded;
  int data = 1;
  int tensor = 1;
  /// In the order of the tensors.
  std::vector<MatrixOwner> matrices;
  /// In the order of the buffer.
  std::vector<OwnedPiece> pieces;
  std::vector<PlannedBucket> buckets;
  /// FLOPs of each rank, data x tensor.
  std::vector<double> load;
  /// Elements that one tensor-parallel rank holds, without padding.
  std::int64_t elements = 0;

  int ranks() const { return data * tensor; }
  /// Elements of the flat buffer.
  std::int64_t size() const { return buckets.empty() ? 0 : buckets.back().flat.end; }
  /// Padding per element that is none.
  double padding() const;
  /// Largest load over the mean; 1 where there is none.
  double max_over_mean() const;
};

/// The plan of one assignment. `tensors` are in the order in which backward completes their
/// gradients. With `shared`, what no rank can share is owned whole.
Plan make_plan(std::span<const OwnedTensor> tensors, const PlanOptions& options,
               Assignment assignment);

/// [matrix]: its owner among so many tensor-parallel ranks, which hold parts of all of them, or who
/// shares it: whole ones by longest processing time first (Graham 1969) and then moves and
/// exchanges as long as the most loaded rank gains; as few are shared, the largest first, as bring
/// the largest load close to the mean.
std::vector<MatrixOwner> divide_matrices(std::span<const OwnedTensor> matrices, int ranks);

/// Bytes that all ranks send in a step: gradients by reduce-scatter, four bytes an element, and
/// parameters by all-gather. The same for ragged shards; with equal buckets that of ZeRO level 1.
double bytes_on_wire(const Plan& plan, int parameter_bytes);

}  // namespace trireme::ownership
