// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/rank_times.hpp"

#include "trireme/base/error.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::telemetry;

TEST_CASE("times of ranks are read back, and the file is replaced, not appended to") {
  const tests::TemporaryFolder folder;
  CHECK(base::value_or_throw(read_rank_times(folder.path())).ranks.empty());
  write_rank_times(folder.path(), {0, 7, 3, {{0, "a", 1}, {1, "b", 2}, {2, "a", 3}}});
  write_rank_times(folder.path(), {2, 12, 5, {{0, "n\"1", 12.3456}, {1, "n2", 0}}});
  const auto times = base::value_or_throw(read_rank_times(folder.path()));
  CHECK(times.restart == 2);
  CHECK(times.step == 12);
  CHECK(times.steps == 5);
  REQUIRE(times.ranks.size() == 2);
  CHECK(times.ranks[0].node == "n\"1");
  CHECK(times.ranks[0].computing_ms == 12.346);
  CHECK(times.ranks[1].rank == 1);
  CHECK(times.ranks[1].node == "n2");
}

TEST_CASE("times of ten thousand ranks on many nodes take less than 200 kB") {
  const tests::TemporaryFolder folder;
  RankTimes times{0, 1, 1, {}};
  for (int rank = 0; rank < 10'000; ++rank) {
    times.ranks.push_back({rank, "node" + std::to_string(rank / 8), 1234.567 + rank});
  }
  write_rank_times(folder.path(), times);
  CHECK(std::filesystem::file_size(rank_times_of_run(folder.path())) < 200'000);
  CHECK(base::value_or_throw(read_rank_times(folder.path())).ranks.back().node == "node1249");
}
