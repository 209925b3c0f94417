// SPDX-License-Identifier: Apache-2.0
// Owners of matrices some of whose work comes once in several updates.
#include "trireme/ownership/plan.hpp"

#include "unit/ownership/owned_shapes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

using namespace trireme;
using namespace trireme::ownership;
using namespace trireme::tests;

namespace {

constexpr std::int64_t every = 10;

/// Matrices as SOAP has them: not to be shared, half of their work in their turn.
std::vector<OwnedTensor> renewed(std::vector<OwnedTensor> tensors) {
  std::map<double, std::int64_t> next;  // by work
  for (auto& tensor : tensors) {
    tensor.split = {};
    if (!tensor.is_matrix()) continue;
    tensor.renewals = {{tensor.flops / 2 * every, every, next[tensor.flops]++ % every}};
  }
  return tensors;
}

std::vector<OwnedTensor> without_turns(std::vector<OwnedTensor> tensors) {
  for (auto& tensor : tensors) tensor.renewals.clear();
  return tensors;
}

/// Largest work of a rank in the update that has most.
double worst_update(const std::vector<OwnedTensor>& tensors,
                    const std::vector<MatrixOwner>& owners) {
  std::map<int, double> always;
  std::map<std::pair<int, std::int64_t>, double> in_turn;
  for (const auto& owner : owners) {
    const auto rank = owner.ranges.front().rank;
    const auto& tensor = tensors[owner.tensor];
    always[rank] += tensor.flops;
    for (const auto& renewal : tensor.renewals) {
      always[rank] -= renewal.flops / static_cast<double>(renewal.every);
      in_turn[{rank, renewal.turn}] += renewal.flops;
    }
  }
  double worst = 0;
  for (const auto& [key, work] : in_turn) worst = std::max(worst, always[key.first] + work);
  return worst;
}

}  // namespace

TEST_CASE("tensor-parallel ranks renew about as much of equal matrices in every update") {
  std::vector<OwnedTensor> tensors;
  for (int at = 0; at < 40; ++at) tensors.push_back(matrix("m", 64, 64, standard));
  tensors = renewed(tensors);
  for (const int ranks : {2, 4, 5, 8}) {
    INFO(ranks << " ranks");
    const auto owners = divide_matrices(tensors, ranks);
    std::map<std::pair<int, std::int64_t>, int> in_turn;
    std::map<int, int> owned;
    for (const auto& owner : owners) {
      const auto rank = owner.ranges.front().rank;
      ++owned[rank];
      ++in_turn[{rank, tensors[owner.tensor].renewals.front().turn}];
    }
    for (const auto& [rank, count] : owned) CHECK(count == 40 / ranks);
    // Four matrices have each turn.
    for (const auto& [key, count] : in_turn) CHECK(count <= (4 + ranks - 1) / ranks);
  }
}

TEST_CASE("turns change no load, no padding and no bucket of a plan, and lower its worst update") {
  int lowered = 0;
  for (const auto& sizes : {qwen3_sizes[0], qwen3_sizes[3]}) {
    for (const auto assignment : {Assignment::padded, Assignment::contiguous}) {
      for (const auto& [data, tensor] : {std::pair{4, 1}, std::pair{8, 1}, std::pair{4, 2}}) {
        INFO(sizes.name << ", " << name(assignment) << ", dp " << data << ", tp " << tensor);
        const auto tensors = renewed(tensor == 1 ? joined(tensors_of(sizes, standard))
                                                 : tensors_of(sizes, standard, tensor));
        const auto options = of_degrees(data, tensor);
        const auto plan = make_plan(tensors, options, assignment);
        const auto plain = make_plan(without_turns(tensors), options, assignment);
        CHECK(plan.size() == plain.size());
        CHECK(plan.buckets.size() == plain.buckets.size());
        for (std::size_t rank = 0; rank < plan.load.size(); ++rank) {
          CHECK(plan.load[rank] == Approx(plain.load[rank]));
        }
        const auto worst = worst_update(tensors, plan.matrices);
        const auto worst_plain = worst_update(tensors, plain.matrices);
        CHECK(worst <= 1.01 * worst_plain);
        lowered += worst < worst_plain ? 1 : 0;
      }
    }
  }
  CHECK(lowered > 0);
}
