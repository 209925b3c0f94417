// SPDX-License-Identifier: Apache-2.0
// The memory that `trireme plan` tells beforehand is what `trireme train` takes.
#include "trireme/base/format.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>

using namespace trireme;
using namespace trireme::tests;

namespace {

/// By purpose, what the log of a rank says at the end of its run: "... parameters 123, ...".
std::string arenas_of(const std::filesystem::path& run, int rank) {
  std::ifstream file(run / "log" / base::format("r{:04}.txt", rank));
  std::string found;
  const std::string words = "arenas held at most ";
  for (std::string line; std::getline(file, line);) {
    if (const auto at = line.find(words); at != std::string::npos) {
      found = line.substr(at + words.size());
    }
  }
  return found;
}

/// `purposes`: of memory that is told.
void compare_plan_and_run(const std::string& optimizer_home, std::size_t purposes) {
  const TemporaryFolder folder;
  const auto prefix = folder.path() / "tokens";
  write_tokens(prefix, made_up_tokens(4000, 512));
  const auto run = folder.path() / "run";
  const std::vector<std::string> settings{"data.train=" + prefix.string(),
                                          "data.validation=" + prefix.string(),
                                          "run.directory=" + run.string(),
                                          "train.steps=2",
                                          "train.eval_every=2",
                                          "train.eval_batches=1",
                                          "parallel.tensor=2",
                                          "parallel.pipeline=2",
                                          "parallel.zero_level=1",
                                          "offload.chunk_bytes=64KiB",
                                          "offload.optimizer=" + optimizer_home,
                                          "numerics.precision=bf16"};
  const std::string configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";
  done_on_ranks(4, with_settings({"train", configuration}, settings));
  const auto plan = base::Json::parse(
      done_on_ranks(1, with_settings({"plan", configuration, "--ranks", "4", "--json"}, settings)));
  for (int rank = 0; rank < 4; ++rank) {
    const auto& bytes = plan["ranks"][static_cast<std::size_t>(rank)]["bytes"];
    const auto said = arenas_of(run, rank);
    INFO(rank << ": " << said << " planned " << bytes.dump());
    for (const auto& [purpose, count] : bytes.items()) {
      if (purpose == "total") continue;
      CHECK(says(said, base::format("{} {}, ", purpose, count.get<std::int64_t>())));
    }
    CHECK(says(said, base::format("in all {} bytes", bytes["total"].get<std::int64_t>())));
  }
  CHECK_FALSE(plan["not_counted"].empty());
  // The record has those of the first rank, after its first step and at the end.
  const auto events = metrics(run, "event");
  int arenas = 0;
  for (const auto& event : events) {
    if (event["event"] != "arenas") continue;
    ++arenas;
    for (const auto& [purpose, count] : event["planned_bytes"].items()) {
      CHECK(plan["ranks"][0]["bytes"][purpose] == count);
      CHECK(event["used_bytes"][purpose] <= count);
    }
    CHECK(event["planned_bytes"].size() == purposes);
  }
  CHECK(arenas == 2);
  CHECK(events.back()["event"] == "done");
}

}  // namespace

TEST_CASE("plan and train agree on the memory of each rank, to the byte") {
  compare_plan_and_run("none", 7);
}

TEST_CASE("plan and train agree on what lies in host memory, and on what is left on the device") {
  compare_plan_and_run("host", 8);
}
