// SPDX-License-Identifier: Apache-2.0
#include "ownership/plans/columns.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::ownership {
namespace {

/// The level is found to a part in 2^halvings of what the columns cost.
constexpr int halvings = 24;

}  // namespace

ColumnDivision::Divided ColumnDivision::lowest() const {
  double all_columns = 0;
  for (const auto& matrix : matrices_) {
    all_columns += static_cast<double>(matrix.columns) * matrix.flops;
  }
  double low = *std::max_element(load_.begin(), load_.end());
  if (auto lowest = below(low)) return *std::move(lowest);
  double high = low + all_columns;
  auto best = below(high);
  TRIREME_EXPECT(best.has_value(), "one rank can take all columns");
  for (int halving = 0; halving < halvings; ++halving) {
    const double middle = low + (high - low) / 2;
    if (auto divided = below(middle)) {
      best = std::move(divided);
      high = middle;
    } else {
      low = middle;
    }
  }
  return *std::move(best);
}

/// Columns of each rank, in proportion to what it can take, so that many ranks work on a matrix at
/// once; empty if they do not fit.
std::vector<std::int64_t> ColumnDivision::spread(
    std::int64_t columns, const std::function<std::int64_t(std::size_t)>& capacity,
    std::size_t ranks) const {
  const auto least = least_columns_;
  std::vector<std::int64_t> room;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto all = capacity(rank);
    room.push_back(all >= columns ? columns : all - all % least);
  }
  const auto rooms = std::accumulate(room.begin(), room.end(), std::int64_t{0});
  if (rooms < columns) return {};
  std::vector<std::int64_t> taken(ranks, 0);
  auto left = columns;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const double share =
        static_cast<double>(columns) * static_cast<double>(room[rank]) / static_cast<double>(rooms);
    taken[rank] = std::min(static_cast<std::int64_t>(share) / least * least, room[rank]);
    left -= taken[rank];
  }
  // The rest that rounding has left goes, a piece at a time, to the rank with most room.
  while (left > 0) {
    std::size_t most = 0;
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      if (room[rank] - taken[rank] > room[most] - taken[most]) most = rank;
    }
    const auto piece = std::min({least, left, room[most] - taken[most]});
    taken[most] += piece;
    left -= piece;
  }
  return taken;
}

std::optional<ColumnDivision::Divided> ColumnDivision::below(double level) const {
  Divided divided{.ranges = {}, .load = load_};
  for (const auto& matrix : matrices_) {
    const auto capacity = [&](std::size_t rank) {
      const double spare = (level - divided.load[rank]) / matrix.flops;
      return std::max<std::int64_t>(0, static_cast<std::int64_t>(spare));
    };
    const auto columns = spread(matrix.columns, capacity, divided.load.size());
    if (columns.empty()) return std::nullopt;
    std::int64_t begin = 0;
    auto& ranges = divided.ranges.emplace_back();
    for (std::size_t rank = 0; rank < columns.size(); ++rank) {
      if (columns[rank] == 0) continue;
      divided.load[rank] += static_cast<double>(columns[rank]) * matrix.flops;
      ranges.push_back({static_cast<int>(rank), begin, begin + columns[rank]});
      begin += columns[rank];
    }
  }
  return divided;
}

}  // namespace trireme::ownership
