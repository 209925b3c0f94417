// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/run_placement.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using record::RankPlace;
using record::RunPlacement;

namespace {

/// Nodes of eight ranks on two NUMA nodes, with a GPU each, as a launcher numbers them: node after
/// node, or round about.
RunPlacement made(int nodes, bool round_about) {
  constexpr int local = 8;
  RunPlacement placement{layout::Mesh::of(nodes, 2, 4), {}};
  for (int rank = 0; rank < nodes * local; ++rank) {
    const int node = round_about ? rank % nodes : rank / local;
    const int slot = round_about ? rank / nodes : rank % local;
    placement.ranks.push_back({base::format("node-{:05}", node),
                               {slot / 4},
                               base::format("{0}-{1},{2}-{3}", 14 * slot, 14 * slot + 13,
                                            112 + 14 * slot, 125 + 14 * slot),
                               14,
                               base::format("0000:{:02x}:00.0", 16 * slot + 27)});
  }
  return placement;
}

void check_round_trip(const RunPlacement& placement) {
  const auto text = record::to_json(placement).dump();
  const auto read = record::parse_placement(base::Json::parse(text));
  REQUIRE(read.ok());
  CHECK(read->mesh == placement.mesh);
  CHECK(read->ranks == placement.ranks);
}

}  // namespace

TEST_CASE("a placement is read as it was written, however ranks are dealt out") {
  check_round_trip(made(3, false));
  check_round_trip(made(3, true));
  auto uneven = made(3, false);
  uneven.ranks[5].numa_nodes = {};
  uneven.ranks[6].gpu = "";
  uneven.ranks[7].node = "node-00002";
  check_round_trip(uneven);
  check_round_trip({layout::Mesh::of(1, 1, 1), {{"", {}, "", 1, ""}}});
}

TEST_CASE("a placement of ten thousand ranks is a small file") {
  // Measured: 73 KB and 188 KB.
  CHECK(record::to_json(made(1250, false)).dump().size() < std::size_t{100} << 10);
  CHECK(record::to_json(made(1250, true)).dump().size() < std::size_t{256} << 10);
  CHECK(record::to_json(made(1250, false)).at("shapes").size() == 1);
  check_round_trip(made(1250, true));
}

TEST_CASE("what is no placement is refused") {
  const auto good = record::to_json(made(2, false));
  const auto refused = [](const base::Json& json) { return !record::parse_placement(json).ok(); };
  REQUIRE_FALSE(refused(good));
  CHECK(refused(base::Json::parse("[]")));
  CHECK(refused(base::Json::parse("{}")));
  for (const auto& [pointer, value] :
       std::vector<std::pair<const char*, const char*>>{{"/ranks", "0"},
                                                        {"/ranks", "15"},
                                                        {"/ranks", "17"},
                                                        {"/ranks", "9000000000"},
                                                        {"/axes/0/axis", "\"x\""},
                                                        {"/axes/0/degree", "3"},
                                                        {"/axes/1", "7"},
                                                        {"/shapes", "7"},
                                                        {"/shapes/0/0", "7"},
                                                        {"/shapes/0", "7"},
                                                        {"/nodes/0/shape", "1"},
                                                        {"/nodes/0/shape", "-1"},
                                                        {"/nodes/0/ranks", "[[0,8]]"},
                                                        {"/nodes/0/ranks", "[[8,15]]"},
                                                        {"/nodes/0/ranks", "[[0,3],[3,6]]"},
                                                        {"/nodes/0/ranks", "[[0,99999999999999]]"},
                                                        {"/nodes/0/ranks", "[0,7]"},
                                                        {"/nodes/1", "null"}}) {
    CAPTURE(pointer, value);
    auto json = good;
    json[base::Json::json_pointer(pointer)] = base::Json::parse(value);
    // A place that is no object is a place of which nothing is known.
    const bool harmless = std::string(pointer) == "/shapes/0/0";
    CHECK(refused(json) == !harmless);
  }
}
