// SPDX-License-Identifier: Apache-2.0
#include "track/recordings.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/telemetry/rank_trace.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using track::TraceRanks;

TEST_CASE("of ten thousand ranks sixteen are sampled, evenly, the first among them") {
  const auto ranks = track::ranks_to_send({}, 10'000, TraceRanks::sampled);
  REQUIRE(ranks.size() == 16);
  for (std::size_t at = 0; at < ranks.size(); ++at) CHECK(ranks[at] == static_cast<int>(at) * 625);
  CHECK(track::ranks_to_send({}, 3, TraceRanks::sampled) == std::vector<int>{0, 1, 2});
  CHECK(track::ranks_to_send({}, 3, TraceRanks::single) == std::vector<int>{0});
  CHECK(track::ranks_to_send({}, 17, TraceRanks::all).size() == 17);
}

TEST_CASE("the first rank of each node is found by what the files say of their hosts") {
  const tests::TemporaryFolder folder;
  const char* const hosts[] = {"b", "b", "a", "c", "a"};
  for (int rank = 0; rank < 5; ++rank) {
    telemetry::RankTrace trace;
    trace.rank = rank;
    trace.world_size = 5;
    trace.host = hosts[rank];
    trace.origin_unix_ns = 1'700'000'000'123'456'789;
    // Longer than the first block that is read.
    trace.groups["tp"] = std::vector<int>(2000, rank);
    const auto path = folder.path() / telemetry::trace_file_name(rank);
    base::write_file_durably(path, telemetry::kineto_text(trace));
    const auto header = base::value_or_throw(telemetry::read_rank_trace_header(path));
    CHECK(header.host == trace.host);
    CHECK(header.groups == trace.groups);
    CHECK(header.origin_unix_ns == trace.origin_unix_ns);
  }
  CHECK(track::ranks_to_send(folder.path(), 5, TraceRanks::first_of_node) ==
        std::vector<int>{0, 2, 3});
}

TEST_CASE("each choice of ranks has a name that is read back") {
  for (const auto ranks :
       {TraceRanks::sampled, TraceRanks::single, TraceRanks::first_of_node, TraceRanks::all}) {
    CHECK(track::trace_ranks(track::name(ranks)) == ranks);
  }
  CHECK_FALSE(track::trace_ranks("none"));
}
