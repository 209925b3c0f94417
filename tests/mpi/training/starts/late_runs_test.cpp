// SPDX-License-Identifier: Apache-2.0
// Whole runs whose parameters come while the next forward computes: what else reads parameters or
// writes them, evaluations, saves beside training, checks of replicas and loads, finds
// those of the step that it follows.
#include "trireme/base/json.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/runtime/session.hpp"

#include "mpi/training/small_run.hpp"
#include "support/late_gathers.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <map>
#include <utility>

using namespace trireme;
using namespace trireme::testing;
namespace fs = std::filesystem;

namespace {

void run_late(const config::Config& config) {
  still_going(config::run_directory(config).filename().string());
  runtime::JoinOptions options;
  options.arrangement = config::arrangement(config.options());
  options.timeout_seconds = 60;
  options.binding = runtime::BindingRule::none;
  runtime::Session session{std::make_unique<CpuKernels>(), runtime::join(mpi(), options, {})};
  const auto inner = session.cluster.groups.take(layout::Axis::data);
  GatherLog log;
  for (auto& [axis, ends, group] : session.cluster.groups.all()) {
    if (axis == layout::Axis::data) group = std::make_unique<LateGathers>(*inner, log);
  }
  {
    train::Trainer trainer(config, session, {});
    CHECK(trainer.run() == base::ExitCode::done);
  }
  CHECK(!log.events.empty());
  CHECK(log.pending == 0);
}

/// Losses and norms of steps, losses of evaluations: bits that must not change.
std::map<std::pair<std::string, std::int64_t>, base::Json> numbers_of(const fs::path& run) {
  std::map<std::pair<std::string, std::int64_t>, base::Json> numbers;
  std::ifstream file(run / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = base::value_or_throw(base::parse_json(line, "metrics.jsonl"));
    const auto kind = json.at("kind").get<std::string>();
    if (kind != "train" && kind != "eval") continue;
    numbers[{kind, json.at("step").get<std::int64_t>()}] = {json.at("loss"),
                                                            json.value("grad_norm", 0.0)};
  }
  return numbers;
}

}  // namespace

TEST_CASE("runs whose parameters come late are those whose parameters are there, saves and all") {
  RunFolder folder;
  for (const std::string precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const auto at_once = folder.path() / ("at-once-" + precision);
    const auto late = folder.path() / ("late-" + precision);
    // The second start goes on from what the first has saved.
    for (const std::string steps : {"6", "10"}) {
      const std::vector<std::string> more{
          "train.steps=" + steps,        "numerics.precision=" + precision,
          "parallel.pipeline=1",         "parallel.zero_level=1",
          "train.global_batch=12",       "model.num_hidden_layers=6",
          "parallel.bucket_bytes=16KiB", "data.validation=" + (folder.path() / "tokens").string(),
          "train.eval_every=2",          "train.eval_batches=1",
          "train.replica_check=3",       "checkpoint.every_steps=2",
          "optimizer.curve=constant"};
      CHECK(run_to_end(small_config(folder, at_once, more), std::make_unique<CpuKernels>()).text ==
            "");
      run_late(small_config(folder, late, more));
    }
    folder.wait();
    if (mpi().world_rank().value() != 0) continue;
    const auto expected = numbers_of(at_once);
    CHECK(expected.size() == 15);
    CHECK(numbers_of(late) == expected);
  }
}
