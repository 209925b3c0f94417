// SPDX-License-Identifier: Apache-2.0
// Matrices whose columns several ranks compute are orthogonalised as whole ones are.
#include "optim/shared_updates.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using namespace trireme::testing;
using device::DType;
using device::Tensor;
using layout::FlatRange;
using optim::SharedMatrix;

namespace {

struct Case {
  layout::MatrixShape shape;
  /// Consecutive ranks that share it: the first and their number.
  int first;
  int sharers;
};

/// Matrix of this case: numbers that repeat late.
std::vector<float> numbers(const Case& of) {
  std::vector<float> values(static_cast<std::size_t>(of.shape.rows * of.shape.columns));
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = static_cast<float>(std::sin(0.37 * static_cast<double>(at * at % 7919)));
  }
  return values;
}

/// Uneven rows, squares in turn.
SharedMatrix sharing_of(const Case& of, int runs, int number) {
  SharedMatrix sharing;
  sharing.number = number;
  std::int64_t begin = 0;
  for (int sharer = 0; sharer < of.sharers; ++sharer) {
    const bool last = sharer + 1 == of.sharers;
    const auto end = last ? of.shape.rows : begin + 1 + of.shape.rows / (of.sharers + 1);
    const FlatRange rows{begin, end};
    sharing.sharers.push_back({of.first + sharer, rows, layout::slice_of_rows(of.shape, rows)});
    begin = end;
  }
  for (int run = 0; run < runs; ++run) {
    sharing.square_ranks.push_back(of.first + (run + number) % of.sharers);
  }
  return sharing;
}

/// Largest relative distance of the own rows from those of the whole matrix, over its cases.
double worst_distance(const std::vector<Case>& cases, DType products, comm::ProcessGroup& group) {
  const auto kernels = device::make_cpu_kernels(1);
  auto workspace = device::Arena::host(device::Purpose::workspace, std::size_t{1} << 24);
  const optim::NewtonSchulz rule;
  const device::ArenaScope scope(workspace);
  optim::SharedUpdates updates(rule, products, group, *kernels, workspace);
  std::vector<SharedMatrix> sharings;
  for (const auto& each : cases) {
    const auto runs = static_cast<int>(optim::runs_of(rule, each.shape).size());
    sharings.push_back(sharing_of(each, runs, static_cast<int>(sharings.size())));
  }
  struct Own {
    std::vector<float> rows;
    std::vector<float> expected;
  };
  std::vector<Own> all;
  all.reserve(cases.size());
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const auto& [shape, first, sharers] = cases[index];
    const int own = group.rank() - first;
    if (own < 0 || own >= sharers) continue;
    const auto& rows = sharings[index].sharers[static_cast<std::size_t>(own)].rows;
    auto whole = numbers(cases[index]);
    const auto from = whole.begin() + rows.begin * shape.columns;
    auto& mine = all.emplace_back();
    mine.rows.assign(from, from + rows.size() * shape.columns);
    optim::orthogonalise(*kernels, workspace, rule, products,
                         {whole.data(), DType::f32, {1, shape.rows, shape.columns}});
    mine.expected.assign(from, from + rows.size() * shape.columns);
    updates.add(shape, sharings[index],
                {mine.rows.data(), DType::f32, {rows.size(), shape.columns}});
  }
  while (updates.advance()) {
  }
  double worst = 0;
  for (const auto& [rows, expected] : all) {
    double error = 0;
    double size = 0;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const double difference = static_cast<double>(rows[at]) - static_cast<double>(expected[at]);
      error += difference * difference;
      size += static_cast<double>(expected[at]) * static_cast<double>(expected[at]);
    }
    const double distance = std::sqrt(error / size);
    worst = std::isfinite(distance) ? std::max(worst, distance) : INFINITY;
  }
  return worst;
}

}  // namespace

TEST_CASE("shared matrices are orthogonalised as whole ones are") {
  const auto group = mpi().make_world({comm::Backend::automatic, 60});
  const int ranks = group->size();
  // Tall, wide and square; shared by all, and by pairs that overlap in one rank.
  std::vector<Case> cases;
  for (const auto& shape : {layout::MatrixShape{70, 24}, {24, 70}, {36, 36}, {25, 33}}) {
    cases.push_back({shape, 0, ranks});
    for (int first = 0; first + 1 < ranks; ++first) cases.push_back({shape, first, 2});
  }
  CHECK(worst_distance(cases, DType::f32, *group) < 1e-5);
  CHECK(worst_distance(cases, DType::bf16, *group) < 0.1);
  // Terms are what is new: without a sum over them the distance is that of other matrices.
  CHECK((ranks == 1 || worst_distance(cases, DType::f32, *group) > 0));
}
