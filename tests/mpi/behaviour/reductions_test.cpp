// SPDX-License-Identifier: Apache-2.0
#include "group_fixture.hpp"

#include <cmath>
#include <limits>

using namespace trireme;
using namespace trireme::testing;

namespace {

std::vector<float> exact_sums(const ProcessGroup& group, std::int64_t count) {
  std::vector<float> sums(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    for (const auto rank : group.ranks()) {
      sums[static_cast<std::size_t>(i)] += exact_value(rank.value(), i);
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("an all-reduce gives every rank the sum, at every size") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      auto values = exact_values(group->rank(), count);
      group->all_reduce(tensor_of(values));
      CHECK(first_difference(values, exact_sums(*group, count)) == -1);
    }
  }
}

TEST_CASE("an all-reduce adds in the order of ranks, bit for bit") {
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      auto values = rough_values(group->rank(), count);
      std::vector<float> expected;
      for (std::int64_t i = 0; i < count; ++i) expected.push_back(ordered_sum(group->ranks(), i));
      group->all_reduce(tensor_of(values));
      CHECK(first_difference(values, expected) == -1);
    }
  }
}

TEST_CASE("a reduce-scatter gives each rank its part, in place or elsewhere") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      for (const bool in_place : {false, true}) {
        // Open MPI's own refuses overlapping buffers.
        if (in_place && backend == Backend::library) continue;
        CAPTURE(name(backend), count, in_place);
        auto values = exact_values(group->rank(), count * group->size());
        auto expected = exact_sums(*group, count * group->size());
        std::vector<float> own(static_cast<std::size_t>(count), -1.0F);
        const auto whole = tensor_of(values);
        const auto part = in_place ? whole.slice(0, group->rank() * count, count) : tensor_of(own);
        group->reduce_scatter(whole, part);
        const auto* result = static_cast<const float*>(part.raw());
        const std::vector<float> got(result, result + count);
        const auto first = expected.begin() + group->rank() * count;
        CHECK(first_difference(got, std::vector<float>(first, first + count)) == -1);
      }
    }
  }
}

TEST_CASE("a reduce-scatter and an all-gather make an all-reduce, bit for bit") {
  for (const auto backend : own_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      auto once = rough_values(group->rank(), count * group->size());
      auto twice = once;
      group->all_reduce(tensor_of(once));
      const auto whole = tensor_of(twice);
      const auto part = whole.slice(0, group->rank() * count, count);
      group->reduce_scatter(whole, part);
      group->all_gather(part, whole);
      CHECK(first_difference(once, twice) == -1);
    }
  }
}

namespace {

/// Rank r of n has (r * r) % n + r % 2 times `count`, and the last one all that is left over.
comm::Cuts uneven_cuts(const ProcessGroup& group, std::int64_t count) {
  comm::Cuts cuts{0};
  for (int rank = 0; rank < group.size(); ++rank) {
    cuts.push_back(cuts.back() + (rank * rank % group.size() + rank % 2) * count);
  }
  cuts.back() += 3;
  return cuts;
}

}  // namespace

TEST_CASE("parts of different lengths, some empty, are added in the order of ranks and gathered") {
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      const auto cuts = uneven_cuts(*group, count);
      CAPTURE(name(backend), count);
      const auto self = static_cast<std::size_t>(group->rank());
      auto values = rough_values(group->rank(), cuts.back());
      std::vector<float> expected;
      for (std::int64_t i = 0; i < cuts.back(); ++i) {
        expected.push_back(ordered_sum(group->ranks(), i));
      }
      const auto whole = tensor_of(values);
      const auto part = whole.slice(0, cuts[self], cuts[self + 1] - cuts[self]);
      group->reduce_scatter(whole, part, cuts);
      const std::vector<float> mine(part.f32(), part.f32() + part.element_count());
      CHECK(first_difference(mine, std::vector<float>(expected.begin() + cuts[self],
                                                      expected.begin() + cuts[self + 1])) == -1);
      group->all_gather(part, whole, cuts);
      CHECK(first_difference(values, expected) == -1);
    }
  }
}

TEST_CASE("parts of different lengths are summed and gathered in place and elsewhere") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      for (const bool in_place : {false, true}) {
        const auto cuts = uneven_cuts(*group, count);
        CAPTURE(name(backend), count, in_place);
        const auto self = static_cast<std::size_t>(group->rank());
        auto values = exact_values(group->rank(), cuts.back());
        const auto sums = exact_sums(*group, cuts.back());
        const auto length = cuts[self + 1] - cuts[self];
        std::vector<float> own(static_cast<std::size_t>(length), -1.0F);
        const auto whole = tensor_of(values);
        const auto part = in_place ? whole.slice(0, cuts[self], length) : tensor_of(own);
        group->reduce_scatter(whole, part, cuts);
        const auto* result = static_cast<const float*>(part.raw());
        CHECK(first_difference(std::vector<float>(result, result + length),
                               std::vector<float>(sums.begin() + cuts[self],
                                                  sums.begin() + cuts[self + 1])) == -1);
        std::vector<float> gathered(values.size(), -1.0F);
        const auto to = in_place ? whole : tensor_of(gathered);
        group->all_gather(part, to, cuts);
        const auto* all = static_cast<const float*>(to.raw());
        CHECK(first_difference(std::vector<float>(all, all + cuts.back()), sums) == -1);
      }
    }
  }
}

TEST_CASE("cuts into equal parts are as none, bit for bit") {
  for (const auto backend : own_backends) {
    const auto group = world_of(backend);
    const std::int64_t count = 4099;
    CAPTURE(name(backend));
    comm::Cuts cuts;
    for (int rank = 0; rank <= group->size(); ++rank) cuts.push_back(rank * count);
    auto values = rough_values(group->rank(), count * group->size());
    const auto copy = values;
    std::vector<float> plain(static_cast<std::size_t>(count));
    auto cut = plain;
    group->reduce_scatter(tensor_of(values), tensor_of(plain));
    values = copy;
    group->reduce_scatter(tensor_of(values), tensor_of(cut), cuts);
    CHECK(first_difference(plain, cut) == -1);
  }
}

TEST_CASE("cuts that are not those of the tensor are a defect with its numbers") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    std::vector<float> values(64);
    const auto whole = tensor_of(values);
    comm::Cuts cuts(static_cast<std::size_t>(group->size()) + 1, 0);
    CHECK_THROWS(group->reduce_scatter(whole, whole.slice(0, 0, 0), cuts));
  }
}

TEST_CASE("bf16 is added in fp32 and rounded once") {
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      std::vector<Bf16> values;
      std::vector<Bf16> expected;
      for (std::int64_t i = 0; i < count; ++i) {
        values.push_back(device::to_bf16(rough_value(group->rank(), i)));
        float sum = device::to_float(device::to_bf16(rough_value(0, i)));
        for (int rank = 1; rank < group->size(); ++rank) {
          sum += device::to_float(device::to_bf16(rough_value(rank, i)));
        }
        expected.push_back(device::to_bf16(sum));
      }
      group->all_reduce(tensor_of(values));
      CHECK(first_difference(values, expected) == -1);
    }
  }
}

TEST_CASE("a maximum over ranks keeps a NaN of any rank") {
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    for (const auto count : {std::int64_t{5}, std::int64_t{70001}}) {
      CAPTURE(name(backend), count);
      auto values = exact_values(group->rank(), count);
      const auto spoilt = static_cast<std::size_t>(group->size() % count);
      if (group->rank() == 0) values[spoilt] = std::numeric_limits<float>::quiet_NaN();
      group->all_reduce(tensor_of(values), ReduceOp::max);
      auto expected = exact_values(group->size() - 1, count);
      CHECK(std::isnan(values[spoilt]));
      values[spoilt] = expected[spoilt];
      CHECK(first_difference(values, expected) == -1);
    }
  }
}

TEST_CASE("whole numbers are reduced as whole numbers") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    std::vector<std::int32_t> values{group->rank() + 16777217, -group->rank()};
    auto largest = values;
    group->all_reduce(tensor_of(values));
    group->all_reduce(tensor_of(largest), ReduceOp::max);
    const int size = group->size();
    CHECK(values[0] == size * 16777217 + size * (size - 1) / 2);
    CHECK(largest == std::vector<std::int32_t>{16777217 + size - 1, 0});
  }
}
