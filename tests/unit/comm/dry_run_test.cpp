// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/process_group.hpp"
#include "trireme/device/arena.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;
using device::DType;
using device::Tensor;

namespace {

std::vector<base::Rank> four_ranks() {
  return {base::Rank(0), base::Rank(2), base::Rank(4), base::Rank(6)};
}

}  // namespace

TEST_CASE("mirrored ranks hold what this one holds") {
  const auto group = comm::make_dry_run_group("dp", four_ranks(), 1, comm::DryRunData::mirrored);
  CHECK(group->size() == 4);
  CHECK(group->rank() == 1);
  std::vector<float> x{1, 2, 3, 4};
  const Tensor whole(x.data(), DType::f32, {4});
  group->all_reduce(whole);
  CHECK(x == std::vector<float>{4, 8, 12, 16});
  group->all_reduce(whole, comm::ReduceOp::max);
  CHECK(x == std::vector<float>{4, 8, 12, 16});
  std::vector<float> y{0};
  const Tensor part(y.data(), DType::f32, {1});
  group->reduce_scatter(whole, part);
  CHECK(y[0] == 32);
  group->all_gather(part, whole);
  CHECK(x == std::vector<float>{32, 32, 32, 32});
  std::vector<float> to(4);
  x = {1, 2, 3, 4};
  group->all_to_all(whole, Tensor(to.data(), DType::f32, {4}));
  CHECK(to == std::vector<float>{2, 2, 2, 2});
  group->send(part, 3, 0);
  group->receive(part, 3, 0);
  CHECK(y[0] == 0);
  group->barrier();
}

TEST_CASE("a dry run counts what collectives and received messages would move") {
  std::size_t moved = 0;
  const auto group =
      comm::make_dry_run_group("dp", four_ranks(), 3, comm::DryRunData::untouched, &moved);
  auto arena = device::Arena::measuring(device::Purpose::gradients);
  const auto whole = arena.allocate(DType::f32, {1024});
  const auto part = whole.slice(0, 768, 256);
  group->all_reduce(whole);
  CHECK(moved == 4096);
  group->reduce_scatter(whole, part);
  group->all_gather(part, whole);
  group->all_to_all(whole, arena.allocate(DType::f32, {1024}));
  group->broadcast(whole, 2);
  CHECK(moved == 5 * 4096);
  group->send(part, 0, 1);
  CHECK(moved == 5 * 4096);
  group->receive(part, 0, 1);
  CHECK(moved == 5 * 4096 + 1024);
  // A rank moves nothing to itself.
  std::size_t alone = 0;
  const auto one =
      comm::make_dry_run_group("dp", {base::Rank(3)}, 0, comm::DryRunData::untouched, &alone);
  one->all_reduce(whole);
  CHECK(alone == 0);
}

TEST_CASE("a dry run over measuring arenas touches no memory") {
  const auto group = comm::make_dry_run_group("dp", four_ranks(), 3, comm::DryRunData::untouched);
  auto arena = device::Arena::measuring(device::Purpose::gradients);
  const auto whole = arena.allocate(DType::f32, {1 << 20});
  const auto part = whole.slice(0, 3 << 18, 1 << 18);
  const auto other = arena.allocate(DType::f32, {1 << 20});
  group->all_reduce(whole);
  group->reduce_scatter(whole, part);
  group->all_gather(part, whole);
  group->all_to_all(whole, other);
  group->broadcast(whole, 2);
  group->send(part, 0, 1);
  group->receive(part, 0, 1);
}
