// SPDX-License-Identifier: Apache-2.0
// Starts that go on with a run: what the run keeps, and what it is told of.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"

#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"
#include "support/pretended_slurm.hpp"

#include <catch2/catch.hpp>

#include <ctime>
#include <fstream>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;
namespace fs = std::filesystem;

namespace {

using Steps = std::vector<std::int64_t>;

RunEnd start(const config::Config& config, train::StartOptions options = {}) {
  options.tool_version = "test";
  return run_to_end(config, std::make_unique<CpuKernels>(), std::move(options));
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path));
}

/// A field of each line of training.
std::vector<std::int64_t> numbers(const fs::path& run, const char* field) {
  std::vector<std::int64_t> all;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    if (json.at("kind") == "train") all.push_back(json.at(field).get<std::int64_t>());
  }
  return all;
}

}  // namespace

TEST_CASE("a start with another model is refused, and no file of the run changes") {
  RunFolder folder;
  const auto run = folder.path() / "keeps its model";
  REQUIRE(start(small_config(folder, run, {"train.steps=2"})).code == ExitCode::done);
  folder.wait();
  const auto model = text_of(run / "model.json");
  const auto resolved = text_of(run / "config.resolved.conf");
  const std::vector<std::pair<const char*, const char*>> changes{
      {"model.num_hidden_layers=4", "model.num_hidden_layers = 4 (--set) instead of 2"},
      {"model.hidden_size=64", "model.hidden_size = 64 (--set) instead of 32"},
      // Settings that change no shape.
      {"model.layer_norm_eps=0.1", "model.layer_norm_eps = 0.1 (--set) instead of 1e-5"},
      {"model.num_attention_heads=2", "model.num_attention_heads = 2 (--set) instead of 4"}};
  for (const auto& [setting, words] : changes) {
    const auto end = start(small_config(folder, run, {"train.steps=4", setting}));
    INFO(end.text);
    CHECK(end.code == ExitCode::usage);
    CHECK(says(end.text, words));
    CHECK(says(end.text, "a run keeps its model"));
    CHECK_FALSE(says(end.text, "\n"));
    folder.wait();
    CHECK(text_of(run / "model.json") == model);
    CHECK(text_of(run / "config.resolved.conf") == resolved);
  }
  // Keys that weights do not depend on may change, and the run is as good as before.
  CHECK(start(small_config(folder, run, {"train.steps=3", "model.dropout=0.1"})).code ==
        ExitCode::done);
  CHECK(steps_of(run, "train") == Steps{1, 2, 3});
  folder.wait();
}

TEST_CASE("a run keeps its batch on more replicas") {
  RunFolder folder;
  const auto run = folder.path() / "keeps its batch";
  // One replica of all ranks as stages, then each rank a replica.
  const auto config = [&](int steps, const char* layout, const char* batch) {
    return small_config(folder, run,
                        {base::format("train.steps={}", steps), layout, batch,
                         "train.micro_batch=8", "checkpoint.keep_last=0"});
  };
  const char* const automatic = "train.global_batch=auto";
  const auto stages = base::format("parallel.pipeline={}", mpi().world_size());
  REQUIRE(start(config(2, stages.c_str(), automatic)).code == ExitCode::done);
  const auto end = start(config(4, "parallel.pipeline=1", automatic));
  INFO(end.text);
  REQUIRE(end.code == ExitCode::done);
  folder.wait();
  CHECK(numbers(run, "tokens") == Steps{80, 160, 240, 320});
  CHECK(numbers(run, "first_sample") == Steps{0, 8, 16, 24});
  // One that is given is taken.
  CHECK(start(config(5, "parallel.pipeline=1", "train.global_batch=32")).code == ExitCode::done);
  folder.wait();
  CHECK(numbers(run, "tokens").back() == 640);
}

TEST_CASE("weights of another run may be of a model that differs, but not in its tensors") {
  RunFolder folder;
  const auto run = folder.path() / "first";
  const auto next = folder.path() / "next";
  REQUIRE(start(small_config(folder, run, {"train.steps=2"})).code == ExitCode::done);
  const auto load = "checkpoint.load=" + run.string();
  const auto end = start(small_config(folder, next, {load, "model.hidden_size=64"}));
  CHECK(end.code == ExitCode::usage);
  INFO(end.text);
  CHECK(says(end.text, "model.hidden_size = 64 instead of 32"));
  CHECK(says(end.text, " of checkpoint.load = "));
  CHECK_FALSE(fs::exists(next));
  CHECK(start(small_config(folder, next, {load, "model.layer_norm_eps=0.1"})).code ==
        ExitCode::done);
  CHECK(steps_of(next, "train") == Steps{3, 4, 5, 6});
  folder.wait();
}

TEST_CASE("a start that makes no step before its time limit fails, and is not to come back") {
  RunFolder folder;
  const tests::PretendedSlurm slurm;
  slurm.says("INVALID");
  const auto run = folder.path() / "limit";
  const auto until = [&](std::time_t end) {
    const base::Environment job(
        {{"SLURM_JOB_ID", "12"}, {"SLURM_JOB_END_TIME", std::to_string(end)}});
    return start(small_config(folder, run, {"train.steps=2"}),
                 {.limit = runtime::TimeLimit(job), .tool_version = ""});
  };
  const auto end = until(std::time(nullptr) + 30);
  INFO(end.text);
  CHECK(end.code == ExitCode::launch);
  CHECK(says(end.text, "leaves no time for a step"));
  CHECK(says(end.text, "run.signal_lead = auto (default)"));
  // One that is past is not this job's.
  CHECK(until(std::time(nullptr) - 30).code == ExitCode::done);
  CHECK(steps_of(run, "train") == Steps{1, 2});
  folder.wait();
}
