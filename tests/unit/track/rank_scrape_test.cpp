// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/rank_scrape.hpp"

#include "trireme/track/endpoint.hpp"
#include "trireme/track/exposition.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

TEST_CASE("times of ranks are found in what a node answers, whatever its name") {
  const std::string node = "n\"0\\1\n{}";
  track::Exposition exposition;
  exposition.metric("trireme_rank_step", "Another metric");
  exposition.sample({{"run", "a"}, {"node", node}, {"rank", "0"}}, 7);
  exposition.metric(track::rank_computing_metric, "Seconds");
  exposition.sample({{"run", "a} 5"}, {"node", node}, {"rank", "8"}}, 0.25);
  exposition.sample({{"run", "a"}, {"node", node}, {"rank", "9"}}, 1e-6);
  const auto times = track::rank_times_in(exposition.text());
  REQUIRE(times.size() == 2);
  CHECK(times[0].rank == 8);
  CHECK(times[0].node == node);
  CHECK(times[0].computing_ms == 250);
  CHECK(times[1].rank == 9);
  CHECK(times[1].computing_ms == Approx(1e-3));
}

TEST_CASE("lines that are none of ours are passed over") {
  const std::string name(track::rank_computing_metric);
  for (const auto* rest :
       {"", "{", "} 1", "{} 1", "{node=\"n\"} 1", "{node=\"n\",rank=\"x\"} 1", "_other 3",
        "{node=\"n\",rank=\"-1\"} 1", "{node=\"n\",rank=\"1\"} NaN", "{node=\"n\",rank=\"1\"}",
        "{node=\"n\",rank=\"1\\\"} 1", "{node=\"n\",rank=\"1\"} 1x"}) {
    CAPTURE(rest);
    CHECK(track::rank_times_in(name + rest + "\n").empty());
  }
  CHECK(track::rank_times_in(name + "{node=\"n\",rank=\"1\"} 1").size() == 1);
}
