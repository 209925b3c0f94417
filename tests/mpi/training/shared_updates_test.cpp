// SPDX-License-Identifier: Apache-2.0
// Matrices whose columns several ranks compute are orthogonalised as whole ones are.
#include "optim/shared_updates.hpp"

#include "trireme/ownership/plan.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace trireme;
using namespace trireme::testing;
using device::DType;
using device::Tensor;
using layout::FlatRange;
using optim::SharedMatrix;

namespace {

/// Parts that ranks hold: rows, and what they compute is the same part of the matrix (data-parallel
/// ranks); or rows or columns, as tensor-parallel ranks do, and they compute something else.
enum class Held { rows, rows_of_others, columns_of_others };

struct Case {
  ownership::MatrixShape shape;
  /// Consecutive ranks that share it: the first and their number.
  int first;
  int ranks;
  Held held = Held::rows;
};

/// Matrix of this case: numbers that repeat late.
std::vector<float> numbers(const Case& of) {
  std::vector<float> values(static_cast<std::size_t>(of.shape.rows * of.shape.columns));
  for (std::size_t at = 0; at < values.size(); ++at) {
    values[at] = static_cast<float>(std::sin(0.37 * static_cast<double>(at * at % 7919)));
  }
  return values;
}

/// Uneven ranges of [0, size).
std::vector<FlatRange> uneven(std::int64_t size, int count) {
  std::vector<FlatRange> ranges;
  std::int64_t begin = 0;
  for (int index = 0; index < count; ++index) {
    const bool last = index + 1 == count;
    const auto end = last ? size : begin + 1 + size / (count + 1);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

/// Squares in turn. Of three ranks and more that compute what others hold, the second computes no
/// columns.
SharedMatrix sharing_of(const Case& of, int runs, int number) {
  SharedMatrix sharing;
  sharing.number = number;
  const auto& [rows, columns] = of.shape;
  const bool by_columns = of.held == Held::columns_of_others;
  const auto held = uneven(by_columns ? columns : rows, of.ranks);
  const int idle = of.held != Held::rows && of.ranks > 2 ? 1 : 0;
  auto slices = uneven(of.shape.longer(), of.ranks - idle);
  if (idle > 0) slices.insert(slices.begin() + 1, FlatRange{slices[0].end, slices[0].end});
  if (of.held != Held::rows) {
    // From the back: as few elements as possible stay where they are.
    std::reverse(slices.begin(), slices.end());
  }
  for (int rank = 0; rank < of.ranks; ++rank) {
    const auto& range = held[static_cast<std::size_t>(rank)];
    layout::Box box{{range.begin, 0}, {range.size(), columns}};
    if (by_columns) box = {{0, range.begin}, {rows, range.size()}};
    const auto slice = of.held == Held::rows ? ownership::slice_of_rows(of.shape, range)
                                             : slices[static_cast<std::size_t>(rank)];
    sharing.shares.push_back({of.first + rank, box, slice});
  }
  for (int run = 0; run < runs; ++run) {
    sharing.gram_ranks.push_back(of.first + (run + number) % of.ranks);
  }
  return sharing;
}

/// Elements of a part, one after the other.
std::vector<float> part_of(const std::vector<float>& whole, const ownership::MatrixShape& shape,
                           const layout::Box& box) {
  std::vector<float> part;
  for (auto row = box.offset[0]; row < box.offset[0] + box.length[0]; ++row) {
    const auto begin = whole.begin() + row * shape.columns + box.offset[1];
    part.insert(part.end(), begin, begin + box.length[1]);
  }
  return part;
}

/// Largest relative distance of the own part from that of the whole matrix, over its cases.
double worst_distance(const std::vector<Case>& cases, DType products, comm::ProcessGroup& group) {
  const auto kernels = device::make_cpu_kernels(1);
  auto workspace = device::Arena::host(device::Purpose::workspace, std::size_t{1} << 24);
  const optim::NewtonSchulz rule;
  const device::ArenaScope scope(workspace);
  std::vector<optim::SharedUpdate> updates;
  std::vector<SharedMatrix> sharings;
  for (const auto& each : cases) {
    const auto runs = static_cast<int>(optim::runs_of(rule, each.shape).size());
    sharings.push_back(sharing_of(each, runs, static_cast<int>(sharings.size())));
  }
  struct Own {
    Tensor held;
    std::vector<float> expected;
  };
  std::vector<Own> all;
  for (std::size_t index = 0; index < cases.size(); ++index) {
    const auto& [shape, first, ranks, ways] = cases[index];
    const int own = group.rank() - first;
    if (own < 0 || own >= ranks) continue;
    const auto& box = sharings[index].shares[static_cast<std::size_t>(own)].held;
    auto whole = numbers(cases[index]);
    const optim::SharingContext context{rule, products, group, *kernels, workspace};
    const auto held = updates.emplace_back(context, shape, sharings[index]).held();
    const auto part = part_of(whole, shape, box);
    std::copy(part.begin(), part.end(), held.f32());
    optim::orthogonalise(*kernels, workspace, rule, products,
                         {whole.data(), DType::f32, {1, shape.rows, shape.columns}});
    all.push_back({held, part_of(whole, shape, box)});
  }
  while (run_phase(updates)) {
  }
  double worst = 0;
  for (const auto& [held, expected] : all) {
    double error = 0;
    double size = 0;
    for (std::size_t at = 0; at < expected.size(); ++at) {
      const double difference =
          static_cast<double>(held.f32()[at]) - static_cast<double>(expected[at]);
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
  for (const auto& shape : {ownership::MatrixShape{70, 24}, {24, 70}, {36, 36}, {25, 33}}) {
    for (const auto held : {Held::rows, Held::rows_of_others, Held::columns_of_others}) {
      cases.push_back({shape, 0, ranks, held});
    }
    for (int first = 0; first + 1 < ranks; ++first) cases.push_back({shape, first, 2});
  }
  CHECK(worst_distance(cases, DType::f32, *group) < 1e-5);
  CHECK(worst_distance(cases, DType::bf16, *group) < 0.1);
  // Terms are what is new: without a sum over them the distance is that of other matrices.
  CHECK((ranks == 1 || worst_distance(cases, DType::f32, *group) > 0));
}
