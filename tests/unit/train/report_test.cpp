#include "trireme/train/report.hpp"

#include "trireme/base/error.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using train::MemoryRecord;

TEST_CASE("what a card's memory holds is told part by part, and what is left is nobody's plan") {
  MemoryRecord record{.device = "card 0000:1b:00.0",
                      .arenas = 6000,
                      .libraries = {{"cuBLASLt", 300}, {"cuDNN", 70}},
                      .graphs = 400,
                      .taken = 7000};
  CHECK(record.rest() == 7000 - 6000 - 300 - 70 - 400);
  // Another figure than the card's own may be larger.
  record.taken = 6500;
  CHECK(record.rest() == 0);

  const tests::TemporaryFolder folder;
  train::Report::Settings settings;
  settings.directory = folder.path();
  settings.run = "a run";
  settings.speaks = true;
  record.taken = 7000;
  train::Report(settings).memory(3, record);
  std::ifstream file(folder.path() / "metrics.jsonl");
  std::string line;
  REQUIRE(std::getline(file, line));
  const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
  CHECK(json.at("event") == "memory");
  CHECK(json.at("step") == 3);
  CHECK(json.at("arena_bytes") == 6000);
  CHECK(json.at("library_bytes") == base::Json{{"cuBLASLt", 300}, {"cuDNN", 70}});
  CHECK(json.at("graph_bytes") == 400);
  CHECK(json.at("taken_bytes") == 7000);
  CHECK_FALSE(std::getline(file, line));
}
