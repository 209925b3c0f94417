// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/cores_use.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using telemetry::CoresUse;
using telemetry::Hindrance;
using telemetry::RankCores;

namespace {

telemetry::ProcessorShares node_of(std::map<int, telemetry::CoreShare> cores) {
  telemetry::ProcessorShares shares{30, 0};
  shares.cores = std::move(cores);
  return shares;
}

}  // namespace

TEST_CASE("what the ranks of some cores have not used themselves went to other programs") {
  const std::vector<RankCores> ranks{{4, {0, 1}, 0.5}, {5, {0, 1}, 0.25}};
  const auto uses =
      telemetry::uses_of("n01", ranks, node_of({{0, {0.9, 0.1}}, {1, {0.6, 0}}, {2, {1, 0}}}));
  REQUIRE(uses.size() == 1);
  const auto& use = uses[0];
  CHECK(use.node == "n01");
  CHECK(use.first_rank == 4);
  CHECK(use.rank_count == 2);
  // A third core is no rank's.
  CHECK(use.core_count == 2);
  CHECK(use.own == Approx(0.375));
  CHECK(use.others == Approx(0.375));
  CHECK(use.stolen == Approx(0.05));
  CHECK(use.idle == Approx(0.2));
  CHECK(telemetry::hindrance_of(use) == Hindrance::other_programs);
  CHECK(telemetry::hindrance_text(use) ==
        "38 % of the processor time of 2 cores of 2 ranks (first: rank 4) on n01 went to other "
        "programs, 38 % to the ranks");
}

TEST_CASE("a limit takes a share of what ranks would have used, however many cores there are") {
  std::vector<RankCores> ranks;
  std::map<int, telemetry::CoreShare> cores;
  for (int rank = 0; rank < 64; ++rank) {
    ranks.push_back({rank, {rank}, 0.95});
    cores[rank] = {0.95, 0};
  }
  auto shares = node_of(cores);
  // 2.5 ms a second on each of 64 cores.
  shares.throttled = 0.16;
  CHECK(telemetry::uses_of("n", ranks, shares)[0].throttled == Approx(0.0026).epsilon(0.02));
  shares.throttled = 64 * 0.95;
  const auto use = telemetry::uses_of("n", ranks, shares)[5];
  CHECK(use.throttled == Approx(0.5));
  CHECK(telemetry::hindrance_text(use) ==
        "a limit of processor time took 50 % of what the ranks on n would have used");
}

TEST_CASE("interrupts are neither other programs nor idle time") {
  const std::vector<RankCores> ranks{{0, {0}, 0.7}};
  const auto uses = telemetry::uses_of("n", ranks, node_of({{0, {0.7, 0, 0.25}}}));
  REQUIRE(uses.size() == 1);
  CHECK(uses[0].others == 0);
  CHECK(uses[0].interrupts == 0.25);
  CHECK(uses[0].idle == Approx(0.05));
  CHECK(telemetry::hindrance_of(uses[0]) == Hindrance::none);
}

TEST_CASE("one core of many that another program has is found, where ranks are bound") {
  std::vector<RankCores> ranks;
  std::map<int, telemetry::CoreShare> cores;
  for (int rank = 0; rank < 64; ++rank) {
    ranks.push_back({rank, {rank}, rank == 17 ? 0.5 : 0.95});
    cores[rank] = {rank == 17 ? 1.0 : 0.95, 0};
  }
  const auto uses = telemetry::uses_of("n", ranks, node_of(cores));
  REQUIRE(uses.size() == 64);
  const auto* const use = telemetry::most_hindered(uses);
  REQUIRE(use != nullptr);
  CHECK(use->first_rank == 17);
  CHECK(telemetry::hindered_share(*use) == Approx(0.5));
  CHECK(telemetry::hindrance_text(*use).starts_with(
      "50 % of the processor time of 1 core of rank 17 on n"));
}

TEST_CASE("ranks whose cores overlap stand together") {
  const std::vector<RankCores> ranks{{0, {0, 1}, 1}, {1, {4, 5}, 1}, {2, {1, 2}, 1}, {3, {5}, 1}};
  std::map<int, telemetry::CoreShare> cores;
  for (int core = 0; core < 8; ++core) cores[core] = {0.75, 0};
  const auto uses = telemetry::uses_of("n", ranks, node_of(cores));
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].core_count == 3);
  CHECK(uses[0].rank_count == 2);
  CHECK(uses[0].own == Approx(2.0 / 3));
  CHECK(uses[1].core_count == 2);
  // They used more than there was: threads of theirs ran elsewhere.
  CHECK(uses[1].own == Approx(0.75));
  CHECK(uses[1].others == Approx(0));
  CHECK(telemetry::uses_of("n", ranks, {}).empty());
  CHECK(telemetry::most_hindered({}) == nullptr);
}

TEST_CASE("idle cores hinder nobody, and stolen time is told apart") {
  CoresUse use{.node = "n", .first_rank = 0, .rank_count = 2, .core_count = 4, .seconds = 30};
  use.others = 0.5;
  use.idle = 0.4;
  CHECK(telemetry::hindrance_of(use) == Hindrance::none);
  CHECK(telemetry::hindered_share(use) == 0);
  CHECK(telemetry::hindrance_text(use).empty());
  CHECK(telemetry::hindrance_remedy(Hindrance::none).empty());
  use.idle = 0.1;
  CHECK(telemetry::hindrance_of(use) == Hindrance::other_programs);
  use.others = 0.1;
  CHECK(telemetry::hindrance_of(use) == Hindrance::none);
  use.stolen = 0.3;
  CHECK(telemetry::hindrance_of(use) == Hindrance::hypervisor);
  CHECK(telemetry::hindrance_text(use) ==
        "30 % of the processor time of 4 cores of 2 ranks (first: rank 0) on n went to other "
        "virtual machines (steal)");
  // Under a limit cores are idle.
  use = {.node = "n", .rank_count = 2, .core_count = 4, .idle = 0.6, .throttled = 0.35};
  CHECK(telemetry::hindrance_of(use) == Hindrance::limit);
  CHECK(telemetry::hindrance_text(use) ==
        "a limit of processor time took 35 % of what the ranks on n would have used");
  for (const auto each : {Hindrance::other_programs, Hindrance::hypervisor, Hindrance::limit}) {
    CHECK_FALSE(telemetry::hindrance_remedy(each).empty());
  }
}

TEST_CASE("a use of cores is read as it was written, and junk as none") {
  CoresUse use{"n\"1", 3, 2, 4, 29.5, 0.25, 0.5, 0.125, 0.075, 0.0625, 0.5};
  const auto again = telemetry::cores_use_from(telemetry::to_json(use));
  CHECK(again.node == use.node);
  CHECK(again.first_rank == 3);
  CHECK(again.rank_count == 2);
  CHECK(again.core_count == 4);
  CHECK(again.seconds == 29.5);
  CHECK(again.own == 0.25);
  CHECK(again.others == 0.5);
  CHECK(again.stolen == 0.125);
  CHECK(again.interrupts == 0.075);
  CHECK(again.idle == 0.063);
  CHECK(again.throttled == 0.5);
  const auto junk = telemetry::cores_use_from(base::Json::parse(
      R"({"node":7,"ranks":-1,"cores":1e300,"seconds":"x","others":9,"idle":-3})"));
  CHECK(junk.node.empty());
  CHECK(junk.rank_count == 0);
  CHECK(junk.core_count == 0);
  CHECK(junk.others == 1);
  CHECK(junk.idle == 0);
}
