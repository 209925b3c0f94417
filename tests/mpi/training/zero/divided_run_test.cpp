// SPDX-License-Identifier: Apache-2.0
// Whole runs at ZeRO levels 2 and 3: evaluated, saved, ended and begun again, at this level and at
// others.
#include "mpi/training/small_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using base::ExitCode;

namespace {

/// Losses by step.
using Losses = std::map<std::int64_t, double>;

Losses run(RunFolder& folder, const std::string& name, int zero_level,
           const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"parallel.pipeline=1", "parallel.data=2",
                                    "train.global_batch=4", "model.tie_word_embeddings=false",
                                    // Blocks of the table and of the head.
                                    "model.vocab_size=1000", "parallel.bucket_bytes=4096",
                                    "train.replica_check=1", "optimizer.curve=constant",
                                    "train.eval_every=2",
                                    "data.validation=" + (folder.path() / "tokens").string(),
                                    "parallel.zero_level=" + std::to_string(zero_level)};
  settings.insert(settings.end(), more.begin(), more.end());
  Losses losses;
  train::StartOptions options;
  options.on_step = [&](const train::StepRecord& record) { losses[record.step] = record.loss; };
  const auto end = run_to_end(small_config(folder, folder.path() / name, settings),
                              std::make_unique<CpuKernels>(), std::move(options));
  INFO(end.text);
  CHECK(end.code == ExitCode::done);
  folder.wait();
  return losses;
}

}  // namespace

TEST_CASE("a run at level 3 has the losses of one at level 0, and goes on from either") {
  RunFolder folder;
  const auto expected = run(folder, "none", 0);
  REQUIRE(expected.size() == 6);
  CHECK(run(folder, "parameters", 3) == expected);
  for (const auto& [first, second] : {std::pair{3, 3}, {3, 0}, {0, 3}}) {
    CAPTURE(first, second);
    const auto name = "from " + std::to_string(first) + " to " + std::to_string(second);
    auto losses = run(folder, name, first, {"train.steps=3"});
    CHECK(losses.size() == 3);
    losses.merge(run(folder, name, second));
    CHECK(losses == expected);
  }
}

TEST_CASE("a run at level 2 goes on from its own checkpoint, and from one of level 3") {
  RunFolder folder;
  const auto expected = run(folder, "gradients", 2);
  REQUIRE(expected.size() == 6);
  auto losses = run(folder, "ended", 2, {"train.steps=3"});
  losses.merge(run(folder, "ended", 2));
  CHECK(losses == expected);
  run(folder, "of three", 3, {"train.steps=3"});
  for (const auto& [step, loss] : run(folder, "of three", 2)) {
    CHECK(loss == Approx(expected.at(step)).epsilon(1e-5));
  }
}
