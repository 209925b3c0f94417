// SPDX-License-Identifier: Apache-2.0
// The times of a step in its line of metrics.jsonl.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::vector<base::Json> steps_of(int ranks, const std::vector<std::string>& layout) {
  const TemporaryFolder folder;
  const auto tokens = folder.path() / "tokens";
  write_tokens(tokens, made_up_tokens(4000, 512));
  const auto run = folder.path() / "run";
  auto settings = layout;
  settings.insert(settings.end(), {"data.train=" + tokens.string(), "train.steps=3",
                                   "run.directory=" + run.string(), "numerics.threads=1"});
  done_on_ranks(ranks, with_settings({"-q", "train", TRIREME_SOURCE_DIR "/configs/debug-tiny.conf"},
                                     settings));
  auto lines = metrics(run, "train");
  REQUIRE(lines.size() == 3);
  for (const auto& line : lines) {
    CHECK(line["data_ms"] > 0);
    double parts = 0;
    for (const auto* part : {"data_ms", "tensor_comm_ms", "exposed_comm_ms", "bubble_ms"}) {
      CHECK(line[part] >= 0);
      parts += line[part].get<double>();
    }
    CHECK(parts < line["step_ms"]);
  }
  return lines;
}

}  // namespace

TEST_CASE("steps of two stages tell each stage's bubble and the tensor-parallel communication") {
  for (const auto& line : steps_of(4, {"parallel.tensor=2", "parallel.pipeline=2"})) {
    CHECK(line["tensor_comm_ms"] > 0);
    REQUIRE(line["stage_bubble_ms"].size() == 2);
    for (const auto& of_stage : line["stage_bubble_ms"]) {
      CHECK(of_stage > 0);
      CHECK(of_stage < line["step_ms"]);
    }
  }
  for (const auto& line : steps_of(2, {"parallel.pipeline=2"})) {
    // Sums over ranks are of whole nanoseconds.
    const double own = line["bubble_ms"];
    CHECK(line["stage_bubble_ms"][0] == Approx(own).margin(1e-6));
  }
}

TEST_CASE("steps of data-parallel ranks alone have neither") {
  for (const auto& line : steps_of(2, {})) {
    CHECK(line["tensor_comm_ms"] == 0);
    CHECK(line["bubble_ms"] == 0);
    CHECK(line["exposed_comm_ms"] > 0);
    CHECK_FALSE(line.contains("stage_bubble_ms"));
  }
}

TEST_CASE("steps of a rule for matrices tell the parts of their update") {
  for (const auto& line :
       steps_of(4, {"parallel.tensor=2", "parallel.zero_level=1", "optimizer.name=muon"})) {
    const auto& phases = line["optimizer_phases_ms"];
    double parts = 0;
    for (const auto* part : {"gather", "compute", "scatter", "parameters"}) {
      CHECK(phases[part] > 0);
      parts += phases[part].get<double>();
    }
    CHECK(parts == Approx(line["optimizer_ms"].get<double>()));
    CHECK(phases["exposed"] > 0);
    CHECK(phases["exposed"] < line["optimizer_ms"]);
  }
  for (const auto& line : steps_of(2, {"optimizer.name=muon"})) {
    CHECK(line["optimizer_phases_ms"]["gather"] == 0);
    CHECK(line["optimizer_phases_ms"]["scatter"] == 0);
  }
  CHECK_FALSE(steps_of(1, {}).front().contains("optimizer_phases_ms"));
}
