// SPDX-License-Identifier: Apache-2.0
// Runs say what was predicted for them, and correct what predicts.
#include "trireme/base/file.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme;
using namespace trireme::tests;

namespace {

const std::filesystem::path tree_configs = std::filesystem::path(TRIREME_SOURCE_DIR) / "configs";
const std::string laptop = tree_configs / "machines/laptop-2-core.conf";

/// A run of debug-tiny on two ranks with these settings.
ProgramEnd trained(const std::filesystem::path& run, std::vector<std::string> settings) {
  const auto tokens = run.parent_path() / "tokens";
  write_tokens(tokens, made_up_tokens(4000, 512));
  settings.insert(settings.end(), {"run.directory=" + run.string(), "data.train=" + tokens.string(),
                                   "train.steps=10", "numerics.peak_flops=1e11"});
  return on_ranks(2,
                  with_settings({"train", (tree_configs / "debug-tiny.conf").string()}, settings));
}

std::filesystem::path run_on(const TemporaryFolder& folder, const std::string& name,
                             std::vector<std::string> settings) {
  const auto run = folder.path() / name;
  const auto end = trained(run, std::move(settings));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  return run;
}

}  // namespace

TEST_CASE("a run with a machine records the predicted step beside each measured one") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  const auto end = trained(run, {"plan.machine=" + laptop});
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, "predicted on laptop-2-core: step "));
  CHECK(says(end.err, "measured: step "));
  const auto plan =
      done_on_ranks(1, {"plan", run.string() + "/config.resolved.conf", "--ranks", "2", "--json"});
  const double planned = 1e3 * base::Json::parse(plan)["prediction"]["seconds"].get<double>();
  const auto steps = metrics(run, "train");
  REQUIRE(steps.size() == 10);
  for (const auto& step : steps) CHECK(step["predicted_ms"].get<double>() == Approx(planned));
  const auto report = base::Json::parse(done_on_ranks(1, {"report", run.string(), "--json"}));
  const auto& predicted = report["runs"][0]["mean_step"]["predicted"];
  CHECK(predicted["machine"] == "laptop-2-core");
  CHECK(predicted["step_ms"].get<double>() == Approx(planned));
  CHECK(predicted["parts_ms"]["compute"] > 0);
  done_on_ranks(1, {"report", run.string()});
  CHECK(says(*base::read_text_file(run / "report.html"), "A step on laptop-2-core"));
}

TEST_CASE("ranks choose a layout that is auto alike, and again when the run goes on") {
  const TemporaryFolder folder;
  const auto run = folder.path() / "run";
  const std::vector<std::string> settings{"plan.machine=" + laptop, "parallel.tensor=auto",
                                          "parallel.pipeline=auto", "train.micro_batch=auto",
                                          "train.global_batch=8"};
  const auto end = trained(run, settings);
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, " is the best of "));
  const auto kept = *base::read_text_file(run / "config.resolved.conf");
  CHECK(says(kept, "# auto"));
  CHECK_FALSE(says(kept, "tensor = auto"));
  const auto on = on_ranks(1, {"train", "--resume", run.string(), "--set", "train.steps=12"});
  INFO(on.err);
  REQUIRE(on.exit_code == 0);
  CHECK(says(on.err, "tp=1,pp=1,dp=1"));
  CHECK(metrics(run, "train").size() == 12);
}

TEST_CASE("a run without a machine predicts nothing") {
  const TemporaryFolder folder;
  const auto run = run_on(folder, "run", {});
  for (const auto& step : metrics(run, "train")) CHECK_FALSE(step.contains("predicted_ms"));
  const auto report = base::Json::parse(done_on_ranks(1, {"report", run.string(), "--json"}));
  CHECK(report["runs"][0]["mean_step"]["predicted"].is_null());
}

TEST_CASE("a run whose machine file cannot be read trains, and says why nothing is predicted") {
  const TemporaryFolder folder;
  const auto file = folder.write("m.conf", "[node]\ngpus = -1\n");
  const auto run = folder.path() / "run";
  const auto end = trained(run, {"plan.machine=" + file.string()});
  INFO(end.err);
  CHECK(end.exit_code == 0);
  CHECK(says(end.err, "no step is predicted: "));
  CHECK(says(end.err, "node.gpus = -1 is too small"));
  for (const auto& step : metrics(run, "train")) CHECK_FALSE(step.contains("predicted_ms"));
  const auto nowhere = (folder.path() / "gone.conf").string();
  const auto gone = trained(folder.path() / "other", {"plan.machine=" + nowhere});
  CHECK(gone.exit_code == 0);
  CHECK(says(gone.err, nowhere));
}

TEST_CASE("runs correct a machine file, and say how far off it is on others") {
  const TemporaryFolder folder;
  const auto one = run_on(folder, "one", {"train.micro_batch=2"});
  const auto other = run_on(folder, "other", {"parallel.tensor=2", "train.micro_batch=2"});
  const auto out = folder.path() / "corrected.conf";
  const auto text = done_on_ranks(1, {"plan", "--calibrate", one.string(), other.string(),
                                      "--machine", laptop, "--machine-out", out.string()});
  CHECK(says(text, "laptop-2-core on 2 runs"));
  CHECK(says(text, " -> "));
  CHECK(says(text, "stays: these runs do not determine it"));
  CHECK(says(text, "runs held out are off by "));
  CHECK(says(*base::read_text_file(out), "calibrated by trireme plan --calibrate on 2 runs"));
  done_on_ranks(1, {"plan", one.string() + "/config.resolved.conf", "--ranks", "2", "--machine",
                    out.string()});
}

TEST_CASE("a calibration needs a machine, and runs that have trained") {
  const TemporaryFolder folder;
  const auto run = run_on(folder, "run", {});
  const auto without = on_ranks(1, {"plan", "--calibrate", run.string(), run.string()});
  CHECK(without.exit_code == 2);
  CHECK(says(without.err, "--calibrate needs --machine"));
  const auto single = on_ranks(1, {"plan", "--calibrate", run.string(), "--machine", laptop});
  CHECK(single.exit_code == 2);
  CHECK(says(single.err, "--calibrate has one run"));
  const auto nowhere =
      on_ranks(1, {"plan", "--calibrate", run.string(), "/no/run", "--machine", laptop});
  CHECK(nowhere.exit_code == 2);
  CHECK(says(nowhere.err, "/no/run"));
}
