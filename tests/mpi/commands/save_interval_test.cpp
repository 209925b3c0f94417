// SPDX-License-Identifier: Apache-2.0
// checkpoint.every_minutes = auto
#include "trireme/base/file.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

using namespace trireme;
using namespace trireme::tests;

namespace {

const std::filesystem::path shipped_configs = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";
const std::string tiny = shipped_configs / "debug-tiny.conf";
const std::string laptop_file = shipped_configs / "machines/laptop-2-core.conf";

/// The laptop, which fails every 400 days, with a disk on which a save takes minutes.
std::string failing_laptop(const TemporaryFolder& folder) {
  auto text = *base::read_text_file(laptop_file);
  text.insert(text.find("[share]"), "disk_write = 1e4\n\n");
  text.insert(text.find("[source]"), "[site]\nmtbf_node_days = 400\n\n");
  text += "node.disk_write = assumed: a test\nsite.mtbf_node_days = assumed: a test\n";
  return folder.write("failing.conf", text).string();
}

std::vector<base::Json> intervals_of(const std::filesystem::path& run) {
  auto events = metrics(run, "event");
  std::erase_if(events, [](const auto& event) { return event["event"] != "save interval"; });
  return events;
}

/// Daly's interval for saves that stop training so long, in minutes.
double daly_minutes(double stall) {
  const double between = 400.0 * 86400;
  const double ratio = stall / (2 * between);
  const double young = std::sqrt(2 * stall * between);
  const double seconds = young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - stall;
  return std::clamp(seconds, 60.0, 6 * 3600.0) / 60;
}

}  // namespace

TEST_CASE("two ranks save by an interval that follows from what their saves take, and go on so") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  write_tokens(folder.path() / "tokens", made_up_tokens(4000, 512));
  const auto end = on_ranks(
      2, with_settings({"train", tiny},
                       {"run.directory=" + run.string(),
                        "data.train=" + (folder.path() / "tokens").string(), "train.steps=10",
                        "numerics.peak_flops=1e11", "plan.machine=" + failing_laptop(folder),
                        "checkpoint.every_minutes=auto", "checkpoint.every_steps=2"}));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err,
             "checkpoint.every_minutes = auto is 360: a failure every 9600 h on 1 node of failing "
             "(site.mtbf_node_days = 400), a save stops training for "));
  CHECK(says(end.err, "(by node.disk_write, until one is measured)"));
  const auto intervals = intervals_of(run);
  REQUIRE(intervals.size() >= 2);
  CHECK(intervals[0]["measured"] == 0);
  CHECK(intervals[0]["minutes"] == 360);
  CHECK(intervals[0]["failure_hours"].get<double>() == Approx(9600));
  // The first save of the run.
  const auto saves = metrics(run, "save");
  CHECK(intervals[1]["measured"] == 1);
  CHECK(intervals[1]["stall_seconds"].get<double>() ==
        Approx(saves[0]["stall_ms"].get<double>() / 1e3));
  for (const auto& interval : intervals) {
    CHECK(interval["minutes"].get<double>() ==
          Approx(daly_minutes(interval["stall_seconds"].get<double>())));
  }
  CHECK(says(*base::read_text_file(run / "config.resolved.conf"), "every_minutes = auto"));

  const auto on = on_ranks(2, {"train", "--resume", run.string(), "--set", "train.steps=12"});
  INFO(on.err);
  REQUIRE(on.exit_code == 0);
  const auto all = intervals_of(run);
  const auto again =
      std::find_if(all.begin(), all.end(), [](const auto& event) { return event["restart"] == 1; });
  REQUIRE(again != all.end());
  CHECK((*again)["minutes"] == 360);
}

TEST_CASE("an interval that is auto needs a machine that says how often nodes fail") {
  const TemporaryFolder folder;
  write_tokens(folder.path() / "tokens", made_up_tokens(4000, 512));
  const std::vector<std::string> settings{"run.directory=" + (folder.path() / "run").string(),
                                          "data.train=" + (folder.path() / "tokens").string(),
                                          "checkpoint.every_minutes=auto"};
  const auto nowhere = on_ranks(2, with_settings({"train", tiny}, settings));
  CHECK(nowhere.exit_code == 2);
  CHECK(says(nowhere.err, "checkpoint.every_minutes = auto"));
  CHECK(says(nowhere.err, "needs plan.machine (how often nodes fail is said in its file"));
  auto on_laptop = settings;
  on_laptop.push_back("plan.machine=" + laptop_file);
  for (const auto* const command : {"train", "config"}) {
    CAPTURE(command);
    std::vector<std::string> words{command};
    if (words[0] == "config") words.emplace_back("check");
    words.push_back(tiny);
    const auto end = on_ranks(words[0] == "config" ? 1 : 2, with_settings(words, on_laptop));
    CHECK(end.exit_code == 2);
    CHECK(says(end.err, "checkpoint.every_minutes = auto needs site.mtbf_node_days, which '" +
                            laptop_file + "' does not have"));
  }
  CHECK_FALSE(std::filesystem::exists(folder.path() / "run"));
}
