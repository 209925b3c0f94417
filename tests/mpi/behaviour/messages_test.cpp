// SPDX-License-Identifier: Apache-2.0
#include "group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

namespace {

int after(const ProcessGroup& group) {
  return (group.rank() + 1) % group.size();
}
int before(const ProcessGroup& group) {
  return (group.rank() + group.size() - 1) % group.size();
}

}  // namespace

TEST_CASE("messages around a ring arrive whole, at every size") {
  for (const auto backend : all_backends) {
    if (mpi().world_size() == 1 && !talks_to_itself(backend)) continue;
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      auto mine = exact_values(group->rank(), count);
      std::vector<float> theirs(mine.size(), -1.0F);
      auto send = group->start_send(tensor_of(mine), after(*group), 3);
      auto receive = group->start_receive(tensor_of(theirs), before(*group), 3);
      receive.wait();
      send.wait();
      CHECK(first_difference(theirs, exact_values(before(*group), count)) == -1);
    }
  }
}

TEST_CASE("messages of one tag arrive in order, whatever is waited for first") {
  for (const auto backend : all_backends) {
    if (mpi().world_size() == 1 && !talks_to_itself(backend)) continue;
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    constexpr int messages = 12;
    std::vector<std::vector<std::int32_t>> out;
    std::vector<std::vector<std::int32_t>> in(messages);
    std::vector<comm::Work> works;
    for (int i = 0; i < messages; ++i) {
      // Small and large ones, so that some are still on their way when later ones start.
      const std::size_t length = i % 3 == 0 ? 50000 : 5;
      out.emplace_back(length, group->rank() * 100 + i);
      in[static_cast<std::size_t>(i)].assign(length, -1);
    }
    for (auto& message : out) {
      works.push_back(group->start_send(tensor_of(message), after(*group), 5));
    }
    for (auto& message : in) {
      works.push_back(group->start_receive(tensor_of(message), before(*group), 5));
    }
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    for (int i = 0; i < messages; ++i) {
      const auto& message = in[static_cast<std::size_t>(i)];
      CHECK(message == std::vector<std::int32_t>(message.size(), before(*group) * 100 + i));
    }
  }
}

TEST_CASE("tags keep messages apart when they are received in another order") {
  for (const auto backend : all_backends) {
    if (mpi().world_size() == 1 && !talks_to_itself(backend)) continue;
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    std::vector<std::int32_t> first(40000, group->rank());
    std::vector<std::int32_t> second(3, group->rank() + 1000);
    std::vector<std::int32_t> heard_first(first.size());
    std::vector<std::int32_t> heard_second(second.size());
    auto send_first = group->start_send(tensor_of(first), after(*group), 1);
    auto send_second = group->start_send(tensor_of(second), after(*group), 70000);
    group->receive(tensor_of(heard_second), before(*group), 70000);
    group->receive(tensor_of(heard_first), before(*group), 1);
    send_second.wait();
    send_first.wait();
    CHECK(heard_first == std::vector<std::int32_t>(first.size(), before(*group)));
    CHECK(heard_second == std::vector<std::int32_t>(second.size(), before(*group) + 1000));
  }
}
