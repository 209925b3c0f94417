// SPDX-License-Identifier: Apache-2.0
// Collectives of many ranks, run here by one process: messages go through queues, in the order in
// which ranks come to them.
#include "comm/mpi/rounds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace trireme::comm;

namespace {

/// Stages of all ranks.
using Plans = std::vector<std::vector<Stage>>;

/// Runs them to their end, ranks in a new order each time around. False if some wait for ever, or
/// if a message is left over.
bool run(Plans& plans) {
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> under_way;  // by from, to
  struct Standing {
    std::size_t stage = 0;
    bool sent = false;
    std::size_t received = 0;
  };
  std::vector<Standing> standing(plans.size());
  std::vector<int> order(plans.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 engine(5);
  const auto advance = [&](int rank) {
    auto& [stage, sent, received] = standing[static_cast<std::size_t>(rank)];
    auto& stages = plans[static_cast<std::size_t>(rank)];
    if (stage == stages.size()) return false;
    auto& steps = stages[stage].steps;
    bool moved = !std::exchange(sent, true);
    for (std::size_t at = 0; moved && at < steps.size(); ++at) {
      if (steps[at].to < 0) continue;
      under_way[{rank, steps[at].to}].emplace_back(steps[at].send.begin(), steps[at].send.end());
    }
    for (; received < steps.size(); ++received, moved = true) {
      auto& step = steps[received];
      if (step.from < 0) continue;
      auto& queue = under_way[{step.from, rank}];
      if (queue.empty()) return moved;
      REQUIRE(queue.front().size() == step.receive.size());
      std::copy(queue.front().begin(), queue.front().end(), step.receive.begin());
      queue.pop_front();
    }
    if (stages[stage].finish) stages[stage].finish();
    ++stage;
    sent = false;
    received = 0;
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    std::shuffle(order.begin(), order.end(), engine);
    for (const int rank : order) moved = advance(rank) || moved;
  }
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (standing[rank].stage != plans[rank].size()) return false;
  }
  return std::all_of(under_way.begin(), under_way.end(),
                     [](const auto& queue) { return queue.second.empty(); });
}

/// Messages that a rank sends.
int sent_by(const std::vector<Stage>& stages) {
  int count = 0;
  for (const auto& stage : stages) {
    for (const auto& step : stage.steps) count += step.to >= 0 ? 1 : 0;
  }
  return count;
}

/// Least number of doublings that reach `size`.
int doublings(int size) {
  int count = 0;
  while ((1 << count) < size) ++count;
  return count;
}

const std::vector<int> sizes{1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 31, 33, 64, 100};

std::span<std::byte> bytes_of(std::vector<int>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace

TEST_CASE("parts of any length come from all ranks to all") {
  for (const int size : sizes) {
    for (const bool alike : {true, false}) {
      INFO(size << " ranks, parts " << (alike ? "alike" : "of other lengths"));
      std::vector<std::size_t> begins{0};
      for (int rank = 0; rank < size; ++rank) {
        begins.push_back(begins.back() + (alike ? 3 : static_cast<std::size_t>(rank * 7 % 5)));
      }
      std::string whole;
      for (std::size_t at = 0; at < begins.back(); ++at) {
        whole += static_cast<char>('a' + at % 26);
      }
      std::vector<std::string> held(static_cast<std::size_t>(size), std::string(whole.size(), '?'));
      Plans plans;
      for (int rank = 0; rank < size; ++rank) {
        auto& own = held[static_cast<std::size_t>(rank)];
        const auto begin = begins[static_cast<std::size_t>(rank)];
        const auto length = begins[static_cast<std::size_t>(rank) + 1] - begin;
        own.replace(begin, length, whole, begin, length);
        plans.push_back(
            gather_rounds({rank, size}, reinterpret_cast<std::byte*>(own.data()), begins));
      }
      REQUIRE(run(plans));
      for (const auto& own : held) CHECK(own == whole);
    }
  }
}

TEST_CASE("what a root has comes to all, from every root") {
  for (const int size : sizes) {
    for (const int root : {0, 1, size / 2, size - 1}) {
      if (root >= size) continue;
      INFO(size << " ranks, root " << root);
      std::vector<std::vector<int>> held(static_cast<std::size_t>(size), {-1, -1});
      held[static_cast<std::size_t>(root)] = {root, 77};
      Plans plans;
      for (int rank = 0; rank < size; ++rank) {
        plans.push_back(
            broadcast_rounds({rank, size}, root, bytes_of(held[static_cast<std::size_t>(rank)])));
      }
      REQUIRE(run(plans));
      for (const auto& own : held) CHECK(own == std::vector{root, 77});
    }
  }
}

TEST_CASE("sums of integers are those of all ranks, on all of them") {
  for (const int size : sizes) {
    INFO(size << " ranks");
    std::vector<std::vector<int>> held;
    std::vector<std::vector<int>> staging(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) held.push_back({rank, 1});
    Plans plans;
    for (int rank = 0; rank < size; ++rank) {
      auto& own = held[static_cast<std::size_t>(rank)];
      auto& theirs = staging[static_cast<std::size_t>(rank)];
      theirs.resize(2 * children_of({rank, size}).size());
      plans.push_back(combine_rounds({rank, size}, bytes_of(own), bytes_of(theirs).data(),
                                     [&own](const std::byte* from) {
                                       int values[2];
                                       std::memcpy(values, from, sizeof values);
                                       own[0] += values[0];
                                       own[1] += values[1];
                                     }));
    }
    REQUIRE(run(plans));
    for (const auto& own : held) CHECK(own == std::vector{size * (size - 1) / 2, size});
  }
}

TEST_CASE("nobody leaves a relayed barrier before all have come") {
  for (const int size : sizes) {
    if (size == 1) continue;
    INFO(size << " ranks");
    Plans plans;
    for (int rank = 0; rank < size; ++rank) plans.push_back(barrier_rounds({rank, size}));
    CHECK(run(plans));
    // One that sends nothing keeps all others.
    int left = 0;
    plans.clear();
    for (int rank = 0; rank < size; ++rank) {
      plans.push_back(barrier_rounds({rank, size}));
      if (rank == size / 2) {
        for (auto& stage : plans.back()) stage.steps.clear();
      } else {
        plans.back().push_back({{}, [&left] { ++left; }, false});
      }
    }
    CHECK_FALSE(run(plans));
    CHECK(left == 0);
  }
}

TEST_CASE("members of a group arrive by their numbers, and end only when all have") {
  for (const int size : sizes) {
    if (size == 1) continue;
    INFO(size << " ranks");
    // Every third rank of the world, the last first.
    std::vector<trireme::base::Rank> members;
    for (int at = size - 1; at >= 0; --at) members.emplace_back(3 * at);
    const auto plans = [&](int that_gives_up) {
      Plans all(static_cast<std::size_t>(3 * size));
      for (int at = 0; at < size; ++at) {
        auto stages = arrival_rounds({at, size}, members);
        if (at == that_gives_up) stages.resize(stages.size() / 2);
        all[static_cast<std::size_t>(3 * (size - 1 - at))] = std::move(stages);
      }
      return all;
    };
    auto whole = plans(-1);
    CHECK(run(whole));
    auto given_up = plans(size / 2);
    CHECK_FALSE(run(given_up));
  }
}

TEST_CASE("where nobody may relay, a barrier is between each and each") {
  CHECK(barrier_rounds({3, 8}).size() == 3);
  const auto direct = barrier_rounds({3, 8, Relays::never});
  REQUIRE(direct.size() == 1);
  CHECK(sent_by(direct) == 7);
}

TEST_CASE("at ten thousand ranks a rank sends messages to few others") {
  for (const int size : {1'000, 1'024, 10'000}) {
    const int rounds = doublings(size);
    const std::vector<trireme::base::Rank> members(static_cast<std::size_t>(size));
    std::vector<std::size_t> words(static_cast<std::size_t>(size) + 1);
    for (std::size_t rank = 0; rank < words.size(); ++rank) words[rank] = 4 * rank;
    std::vector<std::byte> whole(words.back());
    std::vector<int> values(2);
    for (const int rank : {0, 1, 511, 512, size / 2, size - 1}) {
      INFO("rank " << rank << " of " << size);
      const Position at{rank, size};
      CHECK(sent_by(barrier_rounds(at)) == rounds);
      CHECK(sent_by(arrival_rounds(at, members)) == 2 * rounds);
      CHECK(sent_by(gather_rounds(at, whole.data(), words)) <= 2 * rounds);
      CHECK(sent_by(broadcast_rounds(at, 0, bytes_of(values))) <= rounds);
      CHECK(sent_by(combine_rounds(at, bytes_of(values), nullptr, {})) <= rounds + 1);
    }
  }
}
