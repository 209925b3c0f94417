// SPDX-License-Identifier: Apache-2.0
#include "group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

TEST_CASE("an all-gather puts every part into its place") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    for (const auto count : edge_counts()) {
      for (const bool in_place : {false, true}) {
        if (in_place && backend == Backend::library) continue;
        CAPTURE(name(backend), count, in_place);
        std::vector<float> expected;
        for (int rank = 0; rank < group->size(); ++rank) {
          const auto part = exact_values(rank, count);
          expected.insert(expected.end(), part.begin(), part.end());
        }
        std::vector<float> values(expected.size(), -1.0F);
        auto own = exact_values(group->rank(), count);
        const auto whole = tensor_of(values);
        auto part = tensor_of(own);
        if (in_place) {
          part = whole.slice(0, group->rank() * count, count);
          std::copy(own.begin(), own.end(), static_cast<float*>(part.raw()));
        }
        group->all_gather(part, whole);
        CHECK(first_difference(values, expected) == -1);
      }
    }
  }
}

TEST_CASE("an all-to-all transposes parts and ranks") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    const auto size = group->size();
    for (const auto count : edge_counts()) {
      CAPTURE(name(backend), count);
      std::vector<std::int32_t> from;
      std::vector<std::int32_t> expected;
      for (int peer = 0; peer < size; ++peer) {
        for (std::int64_t i = 0; i < count; ++i) {
          const auto tail = static_cast<std::int32_t>(i % 97);
          from.push_back(group->rank() * 100000 + peer * 1000 + tail);
          expected.push_back(peer * 100000 + group->rank() * 1000 + tail);
        }
      }
      std::vector<std::int32_t> to(from.size(), -1);
      group->all_to_all(tensor_of(from), tensor_of(to));
      CHECK(first_difference(to, expected) == -1);
    }
  }
}

TEST_CASE("a broadcast reaches every rank from any root") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    for (int root = 0; root < group->size(); ++root) {
      for (const auto count : edge_counts()) {
        CAPTURE(name(backend), count, root);
        auto values = exact_values(group->rank(), count);
        group->broadcast(tensor_of(values), root);
        CHECK(first_difference(values, exact_values(root, count)) == -1);
      }
    }
  }
}

TEST_CASE("nobody leaves a barrier before the last rank has come") {
  for (const auto backend : all_backends) {
    const auto group = world_of(backend);
    CAPTURE(name(backend));
    // The last to come announces itself; whoever has passed must find the announcement waiting.
    for (int late = 0; late < group->size(); ++late) {
      std::vector<std::int32_t> word{late};
      std::vector<comm::Work> sends;
      if (group->rank() == late) {
        for (int peer = 0; peer < group->size(); ++peer) {
          if (peer != late) sends.push_back(group->start_send(tensor_of(word), peer, 9));
        }
      }
      group->barrier();
      for (auto& send : sends) send.wait();
      if (group->rank() != late) {
        std::vector<std::int32_t> heard{-1};
        group->receive(tensor_of(heard), late, 9);
        CHECK(heard == word);
      }
    }
    group->barrier();
  }
}
