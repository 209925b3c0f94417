// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/node_endpoint.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/track/rank_scrape.hpp"
#include "trireme/web/http.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

namespace {

track::NodeEndpoint::Options on_loopback(const std::filesystem::path& run = {}) {
  return {.run = "a",
          .node = "n1",
          .interface = "lo",
          .port = 0,
          .token = "secret",
          .run_directory = run};
}

std::vector<track::RankStep> two_ranks() {
  return {{3, 0.5, 0, 0, 0, 0.125, 0.25, 6}, {3, 0.5, 0, 0, 0, 0.125, 0.375, 7}};
}

}  // namespace

TEST_CASE("a node answers with the numbers of its ranks and its own") {
  const track::NodeEndpoint node(on_loopback(), two_ranks);
  web::HttpClient client;
  const auto answer = client.perform({.url = base::format("http://{}/metrics", node.target()),
                                      .headers = {"Authorization: Bearer secret"}});
  REQUIRE(answer.ok());
  const auto holds = [&](const char* line) {
    return answer.text.find(base::format("\n{}\n", line)) != std::string::npos;
  };
  CHECK(holds(R"(trireme_rank_step{run="a",node="n1",rank="6"} 3)"));
  CHECK(holds(R"(trireme_rank_data_seconds{run="a",node="n1",rank="7"} 0.125)"));
  CHECK(holds(R"(trireme_rank_computing_seconds{run="a",node="n1",rank="7"} 0.375)"));
  CHECK(holds(R"(trireme_node_ranks{run="a",node="n1"} 2)"));
  CHECK(
      answer.text.find("trireme_node_network_receive_bytes_total{run=\"a\",node=\"n1\",device=") !=
      std::string::npos);
}

TEST_CASE("nodes are found by a run's list, as long as they are there") {
  const tests::TemporaryFolder run;
  const auto listed = run.path() / track::prometheus_targets;
  {
    const track::NodeEndpoint node(on_loopback(run.path()), two_ranks);
    const track::TargetList list(run.path());
    list.write(base::Json::array({node.target()}), "secret");
    using std::filesystem::perms;
    CHECK(std::filesystem::status(run.path() / track::prometheus_token).permissions() ==
          (perms::owner_read | perms::owner_write));
    const auto times = track::scrape_ranks(run.path());
    REQUIRE(times.size() == 2);
    CHECK(times[1].rank == 7);
    CHECK(times[1].node == "n1");
    CHECK(times[1].computing_ms == 375);
  }
  CHECK_FALSE(std::filesystem::exists(listed));
}

TEST_CASE("an interface that the node lacks is named with those that it has") {
  auto options = on_loopback();
  options.interface = "no-such0";
  CHECK_THROWS_WITH(track::NodeEndpoint(options, two_ranks),
                    Catch::Contains("track.prometheus_interface = no-such0 is no interface") &&
                        Catch::Contains("and lo"));
}
