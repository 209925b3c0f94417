// SPDX-License-Identifier: Apache-2.0
// trireme plan --svg
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include "support/svg_check.hpp"
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace trireme::tests;
using trireme::base::Json;
namespace fs = std::filesystem;

namespace {

const fs::path drawn_configs = fs::path(TRIREME_SOURCE_DIR) / "configs";
const std::string h100 = drawn_configs / "machines/dgx-h100.conf";

ProgramEnd drawn(const fs::path& folder, const std::vector<std::string>& options) {
  std::vector<std::string> arguments{"plan", drawn_configs / "llama3-8b.conf", "--svg",
                                     folder.string()};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_trireme(std::move(arguments));
}

/// Files of a folder by name; each must be a picture.
std::map<std::string, std::string> pictures_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto text = *trireme::base::read_text_file(entry.path());
    CAPTURE(entry.path());
    CHECK(svg_fault(text).empty());
    files[entry.path().filename().string()] = text;
  }
  return files;
}

std::vector<std::string> names_in(const std::map<std::string, std::string>& files) {
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.push_back(name);
  return names;
}

/// Seconds of a step on so many ranks, with the batch of the configuration.
Json drawn_seconds(const Json& json, int ranks) {
  const auto& strong = json["pictures"]["strong_scaling"];
  const auto found = std::find_if(strong.begin(), strong.end(),
                                  [&](const auto& step) { return step["ranks"] == ranks; });
  REQUIRE(found != strong.end());
  return (*found)["seconds"];
}

}  // namespace

TEST_CASE("a plan draws its step, its scaling and its memory, the same each time") {
  const TemporaryFolder folder;
  const auto to = folder.path() / "new" / "pictures";
  const auto end = drawn(to, {"--ranks", "64", "--machine", h100, "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto files = pictures_in(to);
  CHECK(names_in(files) == std::vector<std::string>{"memory.svg", "strong-scaling.svg",
                                                    "timeline.svg", "weak-scaling.svg"});
  const auto json = Json::parse(end.out);
  const auto& pictures = json["pictures"];
  CHECK(pictures["timeline"]["seconds"] == json["prediction"]["seconds"]);
  CHECK(drawn_seconds(json, 64) == json["prediction"]["seconds"]);
  std::size_t largest = 0;
  for (const auto& stage : pictures["memory"]) {
    largest = std::max(largest, stage["total"].get<std::size_t>());
  }
  CHECK(largest == json["largest"]["total"]);
  REQUIRE(drawn(to, {"--ranks", "64", "--machine", h100}).exit_code == 0);
  CHECK(pictures_in(to) == files);
}

TEST_CASE("a plan draws the recomputation that it has chosen") {
  const TemporaryFolder folder;
  const auto end = drawn(folder.path() / "chosen", {"--ranks", "64", "--machine", h100, "--json",
                                                    "--set", "train.activation_checkpointing=auto",
                                                    "--set", "train.memory_limit=8GiB"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto json = Json::parse(end.out);
  CHECK(drawn_seconds(json, 64) == json["prediction"]["seconds"]);
}

TEST_CASE("a search draws the layout that is best") {
  const TemporaryFolder folder;
  const auto end =
      drawn(folder.path() / "best", {"--nodes", "8", "--machine", h100, "--search", "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const auto json = Json::parse(end.out);
  CHECK(json["pictures"]["timeline"]["seconds"] == json["layouts"][0]["seconds"]);
  const auto files = pictures_in(folder.path() / "best");
  CHECK(files.size() == 4);
}

TEST_CASE("with a price a plan draws time and money") {
  const TemporaryFolder folder;
  auto text = *trireme::base::read_text_file(h100);
  text.insert(text.find("[source]"), "[site]\nnode_hour = 20\n\n");
  const auto priced = folder.write("priced.conf", text + "site.node_hour = assumed: a test\n");
  const auto end =
      drawn(folder.path() / "priced", {"--ranks", "64", "--machine", priced.string(), "--json"});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(pictures_in(folder.path() / "priced").contains("pareto.svg"));
  for (const auto& step : Json::parse(end.out)["pictures"]["strong_scaling"]) {
    CHECK(step["run"]["cost"].get<double>() > 0);
  }
}

TEST_CASE("pictures need a machine and a folder") {
  const TemporaryFolder folder;
  const auto nowhere = drawn(folder.path() / "a", {"--ranks", "64"});
  CHECK(nowhere.exit_code == 2);
  CHECK(contains(nowhere.err, "--svg needs a machine"));
  CHECK_FALSE(fs::exists(folder.path() / "a"));
  const auto file = folder.write("file", "");
  const auto under = drawn(file / "b", {"--ranks", "64", "--machine", h100});
  CHECK(under.exit_code == 6);
  CHECK(contains(under.err, "--svg " + (file / "b").string() + " cannot be made or written to"));
  const auto one = drawn(folder.path() / "c", {"--ranks", "64", "--machine", h100, "--rank", "0"});
  CHECK(one.exit_code == 2);
}
