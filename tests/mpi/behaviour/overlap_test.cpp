// SPDX-License-Identifier: Apache-2.0
#include "group_fixture.hpp"

#include <algorithm>

using namespace trireme;
using namespace trireme::testing;

TEST_CASE("collectives under way at once finish in whatever order ranks wait for them") {
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    const std::vector<std::int64_t> counts{70001, 3, 300007, 0, 4099, 64, 150000};
    std::vector<std::vector<float>> values;
    for (const auto count : counts) values.push_back(rough_values(group->rank(), count));
    std::vector<comm::Work> works;
    for (auto& value : values) {
      works.push_back(group->start_all_reduce(tensor_of(value), ReduceOp::sum));
    }
    // Odd ranks wait from the last to the first.
    if (group->rank() % 2 == 1) std::reverse(works.begin(), works.end());
    for (auto& work : works) work.wait();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::vector<float> expected;
      for (std::int64_t k = 0; k < counts[i]; ++k) {
        expected.push_back(ordered_sum(group->ranks(), k));
      }
      CHECK(first_difference(values[i], expected) == -1);
    }
  }
}

TEST_CASE("many small collectives under way at once keep their own numbers") {
  // More than a group's memory holds rounds for: a slot is filled again while the first of them
  // still waits for somebody to look.
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    for (int repetition = 0; repetition < 20; ++repetition) {
      std::vector<std::vector<float>> values;
      for (std::int64_t count = 1; count <= 16; ++count) {
        values.push_back(rough_values(group->rank(), 97 * count));
      }
      std::vector<comm::Work> works;
      for (auto& value : values) {
        works.push_back(group->start_all_reduce(tensor_of(value), ReduceOp::sum));
      }
      if ((group->rank() + repetition) % 2 == 1) std::reverse(works.begin(), works.end());
      for (auto& work : works) work.wait();
      for (const auto& value : values) {
        std::vector<float> expected;
        for (std::size_t k = 0; k < value.size(); ++k) {
          expected.push_back(ordered_sum(group->ranks(), static_cast<std::int64_t>(k)));
        }
        CHECK(first_difference(value, expected) == -1);
      }
    }
  }
}

TEST_CASE("polling alone brings a collective to its end") {
  for (const auto backend : own_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    auto values = exact_values(group->rank(), 300007);
    auto work = group->start_all_reduce(tensor_of(values), ReduceOp::max);
    while (!work.poll()) {
    }
    CHECK(first_difference(values, exact_values(group->size() - 1, 300007)) == -1);
  }
}

TEST_CASE("two groups of the same ranks can be waited for in opposite orders") {
  for (const auto backend : own_backends) {
    const auto one = world_of(backend);
    const auto other = world_of(backend);
    CAPTURE(name(backend));
    auto a = exact_values(one->rank(), 300007);
    auto b = exact_values(one->rank(), 70001);
    auto work_a = one->start_all_reduce(tensor_of(a), ReduceOp::max);
    auto work_b = other->start_all_reduce(tensor_of(b), ReduceOp::max);
    if (one->rank() % 2 == 0) {
      work_a.wait();
      work_b.wait();
    } else {
      work_b.wait();
      work_a.wait();
    }
    CHECK(first_difference(a, exact_values(one->size() - 1, 300007)) == -1);
    CHECK(first_difference(b, exact_values(one->size() - 1, 70001)) == -1);
  }
}

TEST_CASE("messages and collectives mix") {
  for (const auto backend : own_backends) {
    if (mpi().world_size() == 1 && !talks_to_itself(backend)) continue;
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    const int next = (group->rank() + 1) % group->size();
    const int last = (group->rank() + group->size() - 1) % group->size();
    for (int round = 0; round < 5; ++round) {
      auto out = exact_values(group->rank() + round, 20011);
      std::vector<float> in(out.size());
      auto sum = exact_values(group->rank(), 40009);
      auto receive = group->start_receive(tensor_of(in), last, round);
      auto reduce = group->start_all_reduce(tensor_of(sum), ReduceOp::max);
      auto send = group->start_send(tensor_of(out), next, round);
      receive.wait();
      reduce.wait();
      send.wait();
      CHECK(first_difference(in, exact_values(last + round, 20011)) == -1);
      CHECK(first_difference(sum, exact_values(group->size() - 1, 40009)) == -1);
    }
  }
}
