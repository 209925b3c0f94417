// SPDX-License-Identifier: Apache-2.0
// How data get into shared memory changes how long they take, and nothing else.
#include "group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

TEST_CASE("arrays that no cache holds arrive whole, whichever stores move them") {
  std::vector<base::Rank> everybody;
  for (int rank = 0; rank < mpi().world_size(); ++rank) everybody.emplace_back(rank);
  for (const auto stores :
       {comm::Stores::measured, comm::Stores::ordinary, comm::Stores::streaming}) {
    CAPTURE(static_cast<int>(stores));
    still_going("stores");
    const auto group = mpi().make_group("world", everybody, {comm::Backend::automatic, 60, stores});
    // 20 MB and a little, so that parts end inside of cache lines.
    constexpr std::int64_t count = 5'000'003;
    auto values = exact_values(group->rank(), count);
    group->all_reduce(tensor_of(values));
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      float sum = 0;
      for (int rank = 0; rank < group->size(); ++rank) sum += exact_value(rank, i);
      wrong += values[static_cast<std::size_t>(i)] == sum ? 0 : 1;
    }
    CHECK(wrong == 0);
    std::vector<float> whole(static_cast<std::size_t>(count * group->size()));
    const auto part = exact_values(group->rank(), count);
    values = part;
    group->all_gather(tensor_of(values), tensor_of(whole));
    for (int rank = 0; rank < group->size(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto found = whole[static_cast<std::size_t>(rank * count + i)];
        wrong += found == exact_value(rank, i) ? 0 : 1;
      }
    }
    CHECK(wrong == 0);
  }
}
