// SPDX-License-Identifier: Apache-2.0
// Plans that cut matrices where the work of one rank ends.
#include "ownership/plans/alignment.hpp"
#include "ownership/plans/assignments.hpp"
#include "ownership/plans/ragged_buckets.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::ownership {
namespace {

/// A rank whose load is so near to its share is full, and one that would exceed it by no more takes
/// the rest of a matrix: fewer matrices are shared.
constexpr double close_to_share = 0.01;

/// Matrix of which the ranks before this one have taken the first rows.
struct OpenMatrix {
  MatrixOwner owner;
  std::int64_t rows_taken = 0;
  /// Squares nobody does yet: their indices, the largest first.
  std::vector<std::size_t> squares;
};

/// The matrices of all buckets are one sequence, which is cut where a rank has its share of the
/// work: a rank has whole matrices, and at both ends at most one that neighbours share.
class MatrixCuts {
 public:
  MatrixCuts(std::span<const OwnedTensor> tensors, const PlanOptions& options)
      : tensors_(tensors), options_(options), writer_(tensors, options) {
    plan_.assignment = Assignment::shared;
    plan_.load.assign(static_cast<std::size_t>(options.data), 0.0);
    for (const auto& tensor : tensors) work_left_ += tensor.flops;
  }

  Plan plan() && {
    for (const auto& [kind, members] : ragged_buckets(tensors_, options_)) {
      for (const auto at : members) {
        if (tensors_[at].is_matrix()) {
          place(at);
        } else {
          writer_.add_filler(at);
        }
      }
      writer_.write_bucket(kind);
    }
    finish(tensors_, options_, writer_, plan_);
    return std::move(plan_);
  }

 private:
  /// Room of the rank that is being filled: an equal part of all that is left, with those behind
  /// it.
  double room() const {
    const double load = plan_.load[static_cast<std::size_t>(rank_)];
    return share() - load;
  }
  double share() const {
    const double load = plan_.load[static_cast<std::size_t>(rank_)];
    return (work_left_ + load) / (options_.data - rank_);
  }
  bool is_last() const { return rank_ + 1 == options_.data; }

  void take(double work) {
    plan_.load[static_cast<std::size_t>(rank_)] += work;
    work_left_ -= work;
  }

  /// Gives a matrix to the rank that is being filled, and to those behind it what exceeds its room.
  void place(std::size_t at) {
    const auto& tensor = tensors_[at];
    OpenMatrix open;
    open.owner.tensor = at;
    open.squares.resize(tensor.split.square.size());
    std::iota(open.squares.begin(), open.squares.end(), std::size_t{0});
    std::stable_sort(open.squares.begin(), open.squares.end(), [&](std::size_t a, std::size_t b) {
      return tensor.split.square[a] > tensor.split.square[b];
    });
    while (!is_last() && room() < close_to_share * share()) ++rank_;
    const auto row_grain = options_.alignment / std::gcd(options_.alignment, tensor.shape.columns);
    const bool can_be_cut =
        tensor.split.possible() && tensor.held_elements == tensor.shape.rows * tensor.shape.columns;
    while (!takes_rest(open)) {
      const auto rows = can_be_cut ? rows_to_take(open, row_grain) : 0;
      if (rows == 0 && open.rows_taken == 0) {
        // Whole to whom it fits better.
        if (room() >= tensor.flops / 2) break;
        ++rank_;
        continue;
      }
      if (rows == 0) break;
      take_rows(open, rows);
    }
    close(open);
  }

  double column_work(const OpenMatrix& open, std::int64_t rows) const {
    const auto& tensor = tensors_[open.owner.tensor];
    return tensor.split.of_column() *
           static_cast<double>(slice_of(tensor, open.rows_taken, rows).size());
  }
  double square_work(const OpenMatrix& open) const {
    const auto& squares = tensors_[open.owner.tensor].split.square;
    return std::accumulate(open.squares.begin(), open.squares.end(), 0.0,
                           [&](double sum, std::size_t square) { return sum + squares[square]; });
  }
  double rest(const OpenMatrix& open) const {
    const auto& tensor = tensors_[open.owner.tensor];
    if (open.rows_taken == 0) return tensor.flops;
    return column_work(open, tensor.shape.rows - open.rows_taken) + square_work(open);
  }
  bool takes_rest(const OpenMatrix& open) const {
    return is_last() || rest(open) <= room() + close_to_share * share();
  }

  /// Slice of the longer side that goes with rows of a matrix.
  static layout::FlatRange slice_of(const OwnedTensor& tensor, std::int64_t begin,
                                    std::int64_t rows) {
    return slice_of_rows(tensor.shape, {begin, begin + rows});
  }

  /// Rows that fill the rank's room, beside the squares that it takes; 0 if there are too few on
  /// either side of the cut.
  std::int64_t rows_to_take(OpenMatrix& open, std::int64_t grain) {
    const auto& tensor = tensors_[open.owner.tensor];
    const auto left = tensor.shape.rows - open.rows_taken;
    const auto per_row = column_work(open, left) / static_cast<double>(left);
    const double least = static_cast<double>(options_.least_columns) * tensor.split.of_column();
    double room = this->room();
    std::vector<std::size_t> taken;
    for (const auto square : open.squares) {
      const double work = tensor.split.square[square];
      if (work + least > room) continue;
      room -= work;
      taken.push_back(square);
    }
    auto rows = static_cast<std::int64_t>(room / per_row) / grain * grain;
    const auto least_rows =
        aligned((options_.least_columns * tensor.shape.rows + tensor.shape.longer() - 1) /
                    tensor.shape.longer(),
                grain);
    rows = std::min(rows, (left - least_rows) / grain * grain);
    if (rows < least_rows) return 0;
    for (const auto square : taken) {
      open.squares.erase(std::find(open.squares.begin(), open.squares.end(), square));
      take(tensor.split.square[square]);
      square_ranks(open)[square] = rank_;
    }
    return rows;
  }

  std::vector<int>& square_ranks(OpenMatrix& open) const {
    open.owner.square_ranks.resize(tensors_[open.owner.tensor].split.square.size(), -1);
    return open.owner.square_ranks;
  }

  void take_rows(OpenMatrix& open, std::int64_t rows) {
    const auto& tensor = tensors_[open.owner.tensor];
    if (open.rows_taken == 0)
      work_left_ += column_work(open, tensor.shape.rows) + tensor.split.of_squares() - tensor.flops;
    square_ranks(open);
    add(open, rows);
    ++rank_;
  }

  /// Rows of a shared matrix to the rank that is being filled.
  void add(OpenMatrix& open, std::int64_t rows) {
    const auto& tensor = tensors_[open.owner.tensor];
    const auto slice = slice_of(tensor, open.rows_taken, rows);
    const auto columns = tensor.shape.columns;
    take(column_work(open, rows));
    open.owner.ranges.push_back({rank_, slice.begin, slice.end});
    open.owner.rows.push_back({open.rows_taken, open.rows_taken + rows});
    writer_.put(rank_, open.owner.tensor, open.rows_taken * columns,
                (open.rows_taken + rows) * columns);
    open.rows_taken += rows;
  }

  /// The rest of a matrix goes to the rank that is being filled.
  void close(OpenMatrix& open) {
    const auto& tensor = tensors_[open.owner.tensor];
    if (open.rows_taken > 0) {
      add(open, tensor.shape.rows - open.rows_taken);
      for (const auto square : open.squares) {
        square_ranks(open)[square] = rank_;
        take(tensor.split.square[square]);
      }
    } else {
      take(tensor.flops);
      open.owner.ranges.push_back({rank_, 0, tensor.shape.longer()});
      writer_.put(rank_, open.owner.tensor, 0, tensor.held_elements);
    }
    plan_.matrices.push_back(std::move(open.owner));
  }

  std::span<const OwnedTensor> tensors_;
  const PlanOptions& options_;
  ShardWriter writer_;
  Plan plan_;
  /// Work of matrices that nobody has taken.
  double work_left_ = 0;
  /// That is being filled.
  int rank_ = 0;
};

}  // namespace

layout::FlatRange slice_of_rows(const MatrixShape& shape, const layout::FlatRange& rows) {
  const auto place = [&](std::int64_t row) { return row * shape.longer() / shape.rows; };
  return {place(rows.begin), place(rows.end)};
}

Plan plan_matrix_cuts(std::span<const OwnedTensor> tensors, const PlanOptions& options) {
  return MatrixCuts(tensors, options).plan();
}

}  // namespace trireme::ownership
