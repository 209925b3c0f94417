// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/clock_offset.hpp"

#include "unit/checkpoint/thread_group.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace trireme;
using comm::ClockOffset;

namespace {

/// Counts the messages of a rank; collectives count as the group's own.
class CountingGroup : public tests::ThreadGroup {
 public:
  using ThreadGroup::ThreadGroup;
  int messages = 0;

  comm::Work start_send(const device::Tensor& x, int peer, int tag) override {
    ++messages;
    return ThreadGroup::start_send(x, peer, tag);
  }
  comm::Work start_receive(const device::Tensor& x, int peer, int tag) override {
    ++messages;
    return ThreadGroup::start_receive(x, peer, tag);
  }
};

/// Clocks are hours apart, in no order.
std::int64_t planted(int clock) {
  constexpr std::int64_t hour = 3'600'000'000'000;
  return clock == 0 ? 0 : hour * ((clock * 7) % 11 - 5) + clock;
}

struct Measured {
  std::vector<ClockOffset> offsets;
  std::vector<int> messages;
};

/// Offsets of all ranks, where rank r reads clock number clocks[r].
Measured measure(const std::vector<int>& clocks) {
  const auto count = static_cast<int>(clocks.size());
  const auto shared = std::make_shared<tests::ThreadGroup::Shared>(count);
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < count; ++rank) ranks.emplace_back(rank);
  Measured found{std::vector<ClockOffset>(clocks.size()), std::vector<int>(clocks.size())};
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < count; ++rank) {
      threads.emplace_back([&, rank] {
        CountingGroup group(shared, ranks, rank);
        const auto index = static_cast<std::size_t>(rank);
        const auto clock = clocks[index];
        const auto now = [clock] { return comm::steady_nanoseconds() + planted(clock); };
        found.offsets[index] =
            comm::measure_clock_offset(group, "node-" + std::to_string(clock), now);
        found.messages[index] = group.messages;
      });
    }
  }
  return found;
}

/// One rank a node.
std::vector<int> one_rank_each(int nodes) {
  std::vector<int> clocks;
  for (int node = 0; node < nodes; ++node) clocks.push_back(node);
  return clocks;
}

void check(const std::vector<int>& clocks, const Measured& found) {
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    CAPTURE(rank, clocks[rank]);
    const auto& [offset, error] = found.offsets[rank];
    CHECK(std::abs(offset - planted(clocks[rank])) <= error);
    CHECK((error == 0) == (clocks[rank] == 0));
  }
}

}  // namespace

TEST_CASE("offsets of clocks add up along a tree of nodes, and so do their errors") {
  // The first has 16 below it, the second 16 below itself, the third the rest.
  const auto clocks = one_rank_each(36);
  const auto found = measure(clocks);
  check(clocks, found);
  for (std::size_t node = 17; node < clocks.size(); ++node) {
    CAPTURE(node);
    CHECK(found.offsets[node].error_nanoseconds > found.offsets[(node - 1) / 16].error_nanoseconds);
  }
}

TEST_CASE("ranks of one clock have one offset, however they are numbered") {
  // Nodes in turns, and one whose ranks come late.
  const std::vector<int> clocks{0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3, 3, 3, 0};
  const auto found = measure(clocks);
  check(clocks, found);
  for (std::size_t rank = 0; rank < clocks.size(); ++rank) {
    const auto first = static_cast<std::size_t>(
        std::find(clocks.begin(), clocks.end(), clocks[rank]) - clocks.begin());
    CHECK(found.offsets[rank].nanoseconds == found.offsets[first].nanoseconds);
    CHECK(found.offsets[rank].error_nanoseconds == found.offsets[first].error_nanoseconds);
  }
  CHECK(measure({0}).offsets[0].error_nanoseconds == 0);
}

TEST_CASE("no rank has more messages in a larger group, but for the logarithm of its size") {
  for (const int nodes : {20, 80}) {
    const auto found = measure(one_rank_each(nodes));
    // 16 exchanges and a sum with 16 below and one above, and the gathering of names.
    constexpr int of_exchanges = 17 * (2 * 16 + 1);
    const int of_names = 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(nodes)));
    CAPTURE(nodes);
    CHECK(*std::max_element(found.messages.begin(), found.messages.end()) <=
          of_exchanges + of_names);
  }
}
