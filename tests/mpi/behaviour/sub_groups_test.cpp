// SPDX-License-Identifier: Apache-2.0
#include "group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

namespace {

struct Plane {
  int rows;
  int columns;
};

/// Rows and columns of ranks laid out row after row.
void check_rows_and_columns(Backend backend, Plane plane) {
  const int rank = mpi().world_rank().value();
  const int row = rank / plane.columns;
  const int column = rank % plane.columns;
  std::vector<base::Rank> row_ranks;
  std::vector<base::Rank> column_ranks;
  for (int i = 0; i < plane.columns; ++i) row_ranks.emplace_back(row * plane.columns + i);
  for (int i = 0; i < plane.rows; ++i) column_ranks.emplace_back(i * plane.columns + column);
  const auto rows = group_of("tp", row_ranks, backend);
  const auto columns = group_of("dp", column_ranks, backend);
  CHECK(rows->rank() == column);
  CHECK(columns->rank() == row);
  CHECK(columns->ranks() == column_ranks);

  auto in_row = rough_values(rank, 4099);
  auto in_column = rough_values(rank, 70001);
  auto work = columns->start_all_reduce(tensor_of(in_column), ReduceOp::sum);
  rows->all_reduce(tensor_of(in_row));
  work.wait();
  for (std::size_t i = 0; i < in_row.size(); i += 97) {
    CHECK(in_row[i] == ordered_sum(row_ranks, static_cast<std::int64_t>(i)));
  }
  for (std::size_t i = 0; i < in_column.size(); i += 997) {
    CHECK(in_column[i] == ordered_sum(column_ranks, static_cast<std::int64_t>(i)));
  }
}

}  // namespace

TEST_CASE("rows and columns of 2 x 3 and 3 x 2 ranks reduce apart") {
  if (mpi().world_size() != 6) return;
  for (const auto backend : ordered_backends) {
    for (const Plane plane : {Plane{2, 3}, Plane{3, 2}, Plane{1, 6}, Plane{6, 1}}) {
      CAPTURE(name(backend), plane.rows, plane.columns);
      check_rows_and_columns(backend, plane);
    }
  }
}

TEST_CASE("positions follow the order given, not the order of world ranks") {
  for (const auto backend : ordered_backends) {
    CAPTURE(name(backend));
    const int size = mpi().world_size();
    std::vector<base::Rank> reversed;
    for (int rank = size - 1; rank >= 0; --rank) reversed.emplace_back(rank);
    const auto group = group_of("reversed", reversed, backend);
    CHECK(group->rank() == size - 1 - mpi().world_rank().value());
    auto values = rough_values(mpi().world_rank().value(), 1023);
    group->all_reduce(tensor_of(values));
    std::vector<float> expected;
    for (std::int64_t i = 0; i < 1023; ++i) expected.push_back(ordered_sum(reversed, i));
    CHECK(first_difference(values, expected) == -1);
  }
}

TEST_CASE("groups of other ranks than this one need nothing from it") {
  if (mpi().world_size() < 3) return;
  for (const auto backend : ordered_backends) {
    CAPTURE(name(backend));
    const int size = mpi().world_size();
    std::vector<base::Rank> all_but_last;
    for (int rank = 0; rank + 1 < size; ++rank) all_but_last.emplace_back(rank);
    if (mpi().world_rank().value() == size - 1) continue;
    const auto group = group_of("some", all_but_last, backend);
    std::vector<std::int32_t> one{1};
    group->all_reduce(tensor_of(one));
    CHECK(one[0] == size - 1);
  }
}
