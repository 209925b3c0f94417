// SPDX-License-Identifier: Apache-2.0
// Runs with rules for matrices: what they go on with, and what their settings change.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"

#include "mpi/training/small_run.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;
namespace fs = std::filesystem;

namespace {

using LoadedSteps = std::vector<std::int64_t>;

RunEnd run_one(const config::Config& config) {
  return run_to_end(config, std::make_unique<CpuKernels>());
}

/// Losses of steps, in the order of the record.
std::vector<double> training_losses(const fs::path& run) {
  std::vector<double> losses;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == "train") losses.push_back(json.at("loss").get<double>());
  }
  return losses;
}

}  // namespace

TEST_CASE("another optimizer goes on from the weights of a run, with state of its own") {
  const RunFolder folder;
  const auto run = folder.path() / "switches";
  const auto config = [&](const char* rule, int steps) {
    return small_config(folder, run,
                        {base::format("optimizer.name={}", rule), "checkpoint.every_steps=2",
                         "optimizer.curve=constant", base::format("train.steps={}", steps)});
  };
  CHECK(run_one(config("adamw", 2)).code == ExitCode::done);
  const auto kept = folder.path() / "kept";
  fs::copy(run, kept, fs::copy_options::recursive);
  CHECK(run_one(config("muon", 4)).code == ExitCode::done);
  CHECK(run_one(config("adamw", 6)).code == ExitCode::done);
  CHECK(steps_of(run, "load") == LoadedSteps{2, 4});
  const auto switched = training_losses(run);
  REQUIRE(switched.size() == 6);
  // The line of a step holds the loss before its update: weights are those that were saved.
  const auto stayed_config = [&](int steps) {
    return small_config(folder, kept,
                        {"checkpoint.every_steps=2", "optimizer.curve=constant",
                         base::format("train.steps={}", steps)});
  };
  CHECK(run_one(stayed_config(4)).code == ExitCode::done);
  const auto stayed = training_losses(kept);
  REQUIRE(stayed.size() == 4);
  CHECK(switched[2] == stayed[2]);
  CHECK(switched[3] != stayed[3]);
}

TEST_CASE("heads as matrices, and matrices left to AdamW, change updates and not the weights") {
  const RunFolder folder;
  const auto losses = [&](const std::string& name, const std::string& setting) {
    const auto run = folder.path() / name;
    fs::copy(folder.path() / "first", run, fs::copy_options::recursive);
    std::vector<std::string> settings{"optimizer.name=muon", "checkpoint.every_steps=2",
                                      "optimizer.curve=constant", "train.steps=4"};
    if (!setting.empty()) settings.push_back(setting);
    CHECK(run_one(small_config(folder, run, settings)).code == ExitCode::done);
    CHECK(steps_of(run, "load") == LoadedSteps{2});
    return training_losses(run);
  };
  CHECK(run_one(small_config(folder, folder.path() / "first",
                             {"optimizer.name=muon", "checkpoint.every_steps=2",
                              "optimizer.curve=constant", "train.steps=2"}))
            .code == ExitCode::done);
  const auto plain = losses("plain", "");
  REQUIRE(plain.size() == 4);
  for (const std::string setting :
       {"optimizer.per_head=true", "optimizer.adamw_matrices=*.mlp.*"}) {
    CAPTURE(setting);
    const auto other = losses(setting.substr(10, 6), setting);
    REQUIRE(other.size() == 4);
    // The line of a step holds the loss before its update.
    CHECK(other[2] == plain[2]);
    CHECK(other[3] != plain[3]);
  }
}

TEST_CASE("a run with muon goes on bit for bit from what it saved") {
  const RunFolder folder;
  const auto config = [&](const fs::path& run, int steps) {
    return small_config(folder, run,
                        {"optimizer.name=muon", "checkpoint.every_steps=3",
                         "optimizer.curve=constant", base::format("train.steps={}", steps)});
  };
  const auto last_of = [](const fs::path& run) {
    std::string last;
    std::ifstream file(run / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
      if (json.at("kind") != "train") continue;
      CHECK(json.at("optimizer_ms").get<double>() >= 0);
      last = json.at("loss").dump() + json.at("grad_norm").dump();
    }
    return last;
  };
  const auto whole = folder.path() / "whole";
  const auto halves = folder.path() / "halves";
  CHECK(run_one(config(whole, 6)).code == ExitCode::done);
  CHECK(run_one(config(halves, 3)).code == ExitCode::done);
  CHECK(run_one(config(halves, 6)).code == ExitCode::done);
  CHECK(steps_of(halves, "load") == LoadedSteps{3});
  CHECK(last_of(halves) == last_of(whole));
}
