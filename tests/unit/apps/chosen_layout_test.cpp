// SPDX-License-Identifier: Apache-2.0
// Layouts that are auto: parallel.tensor = auto
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

const std::filesystem::path of_tree = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";

/// A plan of Llama 3 8B with these settings.
ProgramEnd planned_with(const std::vector<std::string>& settings,
                        const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"plan", of_tree / "llama3-8b.conf"};
  for (const auto& setting : settings) {
    arguments.insert(arguments.end(), {"--set", setting});
  }
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_trireme(arguments);
}

const std::vector<std::string> on_64{"--ranks", "64", "--machine",
                                     of_tree / "machines" / "dgx-h100.conf", "--json"};
const std::vector<std::string> all_auto{
    "parallel.tensor=auto",   "parallel.pipeline=auto", "parallel.virtual_stages=auto",
    "parallel.schedule=auto", "parallel.sequence=auto", "parallel.zero_level=auto",
    "parallel.data=auto",     "train.micro_batch=auto", "train.activation_checkpointing=auto",
    "numerics.backend=cuda"};

Json json_of_plan(const std::vector<std::string>& settings) {
  const auto end = planned_with(settings, on_64);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return Json::parse(end.out);
}

}  // namespace

TEST_CASE("a layout that is auto is the one that a search finds best") {
  const auto chosen = json_of_plan(all_auto);
  const auto found = run_trireme({"plan", of_tree / "llama3-8b.conf", "--set",
                                  "numerics.backend=cuda", "--ranks", "64", "--machine",
                                  of_tree / "machines" / "dgx-h100.conf", "--search", "--json"});
  REQUIRE(found.exit_code == 0);
  const auto best = Json::parse(found.out)["layouts"][0];
  const auto sentence = chosen["chosen"].get<std::string>();
  CHECK(sentence.starts_with(best["layout"].get<std::string>() + " is the best of "));
  CHECK(contains(sentence, "; next: tp="));
  CHECK(chosen["prediction"]["seconds"] == best["seconds"]);
}

TEST_CASE("what is not auto stays as it is configured") {
  auto settings = all_auto;
  settings[0] = "parallel.tensor=2";
  settings[5] = "parallel.zero_level=1";
  settings[7] = "train.micro_batch=1";
  const auto chosen = json_of_plan(settings);
  CHECK(chosen["mesh"]["tp"] == 2);
  CHECK(chosen["zero_level"] == 1);
  CHECK(chosen["chosen"].get<std::string>().starts_with("tp=2,"));
  CHECK(contains(chosen["chosen"].get<std::string>(), ",mbs=1"));
}

TEST_CASE("a layout is chosen for ranks and a machine, and refused without") {
  const auto of_none = planned_with({"parallel.tensor=auto"}, {});
  CHECK(of_none.exit_code == 2);
  CHECK(contains(of_none.err, "parallel.tensor = auto needs a number of ranks"));
  const auto nowhere = planned_with({"parallel.tensor=auto"}, {"--ranks", "8"});
  CHECK(nowhere.exit_code == 2);
  CHECK(contains(nowhere.err, "parallel.tensor = auto needs plan.machine"));
  const auto drawn =
      run_trireme({"layout", of_tree / "llama3-8b.conf", "--set", "parallel.pipeline=auto"});
  CHECK(drawn.exit_code == 2);
  CHECK(contains(drawn.err, "parallel.pipeline = auto is chosen when a run starts"));
}

TEST_CASE("layers that are given to stages do not go with a layout that is chosen") {
  auto settings = all_auto;
  settings.emplace_back("parallel.stage_layers=17,15");
  const auto end = planned_with(settings, on_64);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "parallel.stage_layers does not go with parallel.tensor = auto"));
}

TEST_CASE("a level that no search looks at is refused where it is kept") {
  auto settings = all_auto;
  settings[5] = "parallel.zero_level=2";
  const auto end = planned_with(settings, on_64);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "parallel.zero_level = 2 does not go with a search"));
}

TEST_CASE("no layout is chosen for ranks whose number a launcher does not announce") {
  auto start =
      trireme_start({"train", of_tree / "quickstart.conf", "--set", "parallel.tensor=auto", "--set",
                     "plan.machine=" + (of_tree / "machines" / "laptop-2-core.conf").string()});
  start.environment["PMIX_RANK"] = "0";
  const auto end = run_program(start);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err,
                 "parallel.tensor = auto needs a number of ranks before MPI starts, which "
                 "a process manager does not announce"));
}

TEST_CASE("a layout that no rank has room for is refused, with the bytes that it lacks") {
  auto settings = all_auto;
  settings.emplace_back("train.memory_limit=100MiB");
  const auto end = planned_with(settings, on_64);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "no layout fits into machine dgx-h100 on 64 ranks"));
}

TEST_CASE(
    "a launch with a layout of the job's choice makes all its settings auto but those it gives") {
  auto start = trireme_start({"config", "show", of_tree / "llama3-8b.conf", "--origin"});
  start.environment["TRIREME_PARALLEL"] = "auto";
  start.environment["TRIREME_TENSOR_PARALLEL"] = "4";
  const auto end = run_program(start);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  for (const auto* const key : {"pipeline", "virtual_stages", "schedule", "sequence", "zero_level",
                                "data", "micro_batch"}) {
    CAPTURE(key);
    const auto line = end.out.find("\n" + std::string(key) + " = auto");
    REQUIRE(line != std::string::npos);
    CHECK(contains(end.out.substr(line + 1, end.out.find('\n', line + 1) - line),
                   "TRIREME_PARALLEL"));
  }
  CHECK(contains(end.out, "\ntensor = 4"));
}

TEST_CASE("a configuration whose layout is auto is checked as far as it is known") {
  const auto end =
      run_trireme({"config", "check", of_tree / "llama3-8b.conf", "--set", "parallel.tensor=auto"});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(contains(end.out, "not checked: "));
  CHECK(contains(end.out, "parallel.tensor = auto is chosen at the start"));
}
