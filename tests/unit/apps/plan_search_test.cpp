// SPDX-License-Identifier: Apache-2.0
// trireme plan --search
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace trireme::tests;
using trireme::base::Json;

namespace {

const std::filesystem::path shipped = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";

std::vector<std::string> search_of(const std::string& config, const std::string& machine,
                                   const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"plan", shipped / config, "--machine",
                                     shipped / "machines" / (machine + ".conf"), "--search"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

Json found(const std::string& config, const std::string& machine,
           std::vector<std::string> options) {
  options.emplace_back("--json");
  const auto end = run_trireme(search_of(config, machine, options));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return Json::parse(end.out);
}

std::string refused(const std::vector<std::string>& arguments) {
  const auto end = run_trireme(arguments);
  CHECK(end.exit_code == 2);
  return end.err;
}

}  // namespace

TEST_CASE("the lines of the best layout give a plan of the same step and memory") {
  const auto end = run_trireme(search_of("llama3-8b.conf", "dgx-h100", {"--nodes", "8"}));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto lines = end.out.find("[parallel]");
  REQUIRE(lines != std::string::npos);
  const TemporaryFolder folder;
  const auto layout = folder.write("layout.conf", end.out.substr(lines));
  const auto plan =
      run_trireme({"plan", shipped / "llama3-8b.conf", layout.string(), "--ranks", "64",
                   "--machine", shipped / "machines" / "dgx-h100.conf", "--json"});
  INFO(plan.err);
  REQUIRE(plan.exit_code == 0);
  const auto planned = Json::parse(plan.out)["prediction"];

  const auto search = found("llama3-8b.conf", "dgx-h100", {"--nodes", "8"});
  const auto& best = search["layouts"][0];
  CHECK(best["rank"] == 1);
  CHECK(planned["seconds"] == best["seconds"]);
  CHECK(planned["parts"] == best["parts"]);
  const auto of_stages = best["memory_bytes"].get<std::vector<std::size_t>>();
  const auto of_ranks = planned["memory_bytes"].get<std::vector<std::size_t>>();
  CHECK(*std::max_element(of_stages.begin(), of_stages.end()) ==
        *std::max_element(of_ranks.begin(), of_ranks.end()));
}

TEST_CASE("a search is no slower than the layout that a configuration has") {
  for (const auto* const machine : {"dgx-a100", "dgx-h100", "gb200-nvl72"}) {
    CAPTURE(machine);
    const auto search = found("llama3-8b.conf", machine, {"--ranks", "64", "--top", "3"});
    REQUIRE(search["layouts"].size() == 3);
    const auto plan =
        run_trireme({"plan", shipped / "llama3-8b.conf", "--ranks", "64", "--machine",
                     shipped / "machines" / (std::string(machine) + ".conf"), "--json"});
    CHECK(search["layouts"][0]["seconds"] <= Json::parse(plan.out)["prediction"]["seconds"]);
    CHECK(search["layouts"][0]["seconds"] <= search["layouts"][1]["seconds"]);
    CHECK(search["layouts"][0].count("lost_because") == 0);
    CHECK(search["layouts"][2]["lost_because"].get<std::string>().size() > 10);
  }
}

TEST_CASE("people read a table, the reasons and lines to paste") {
  const auto end = run_trireme(
      search_of("debug-tiny.conf", "laptop-2-core",
                {"--ranks", "4", "--set", "train.global_batch=16", "--why", "tp=2,pp=2"}));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  for (const auto* const part :
       {"least time of a step on laptop-2-core: of ", "\n rank       step    compute",
        "\ndata parallel alone:\n", "\ntp=2,pp=2:\n", " slower: +",
        "\n[parallel]\ntensor = ", "\n[train]\nmicro_batch = "}) {
    CAPTURE(part);
    CHECK(contains(end.out, part));
  }
}

TEST_CASE("a search needs a machine, ranks and one batch") {
  const std::string tiny = shipped / "debug-tiny.conf";
  const std::string laptop = shipped / "machines" / "laptop-2-core.conf";
  CHECK(contains(refused({"plan", tiny, "--search", "--ranks", "2"}), "--machine"));
  CHECK(contains(refused({"plan", tiny, "--search", "--machine", laptop}), "give --ranks"));
  CHECK(contains(refused({"plan", tiny, "--search", "--machine", laptop, "--nodes", "2"}),
                 "--nodes does not go with machine laptop-2-core"));
  CHECK(contains(refused({"plan", tiny, "--search", "--machine", laptop, "--ranks", "2",
                          "--objective", "money"}),
                 "money"));
  CHECK(contains(refused({"plan", tiny, "--search", "--machine", laptop, "--ranks", "2",
                          "--objective", "cost"}),
                 "site.node_hour"));
  CHECK(contains(refused({"plan", tiny, "--machine", laptop, "--ranks", "2", "--why", "tp=2"}),
                 "--search"));
}
