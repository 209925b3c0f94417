// SPDX-License-Identifier: Apache-2.0
// `numerics.stochastic_rounding` through a run's life: refusals, and going on from a checkpoint in
// another layout.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

namespace {

using Steps = std::vector<std::pair<double, double>>;

class Runs {
 public:
  Runs() {
    tokens_ = (folder_.path() / "tokens").string();
    write_tokens(tokens_, made_up_tokens(4000, 300));
  }

  std::vector<std::string> training(const std::string& name, std::vector<std::string> more) const {
    std::vector<std::string> settings{"run.directory=" + (folder_.path() / name).string(),
                                      "data.train=" + tokens_,
                                      "model.architecture=llama",
                                      "model.vocab_size=300",
                                      "model.hidden_size=48",
                                      "model.num_hidden_layers=2",
                                      "model.num_attention_heads=4",
                                      "model.head_dim=12",
                                      "model.intermediate_size=96",
                                      "train.sequence_length=32",
                                      "train.micro_batch=2",
                                      "train.global_batch=8",
                                      "numerics.precision=bf16",
                                      "numerics.threads=1",
                                      "optimizer.warmup_steps=0",
                                      "optimizer.curve=constant",
                                      "checkpoint.every_steps=3"};
    settings.insert(settings.end(), more.begin(), more.end());
    return with_settings({"-q", "train"}, settings);
  }
  void run(int ranks, const std::string& name, const std::vector<std::string>& settings) const {
    done_on_ranks(ranks, training(name, settings));
  }
  /// Loss and norm of each step.
  Steps steps_of(const std::string& name) const {
    Steps steps;
    for (const auto& line : metrics(folder_.path() / name, "train")) {
      steps.emplace_back(line["loss"].get<double>(), line["grad_norm"].get<double>());
    }
    return steps;
  }

 private:
  TemporaryFolder folder_;
  std::string tokens_;
};

}  // namespace

TEST_CASE("a run rounded at random goes on from a checkpoint in another layout, bit by bit") {
  const Runs runs;
  const std::string at_random = "numerics.stochastic_rounding=true";
  const std::string two_stages = "parallel.pipeline=2";
  runs.run(2, "whole", {at_random, two_stages, "train.steps=6"});
  runs.run(1, "parts", {at_random, "train.steps=3"});
  runs.run(2, "parts", {at_random, two_stages, "train.steps=6"});
  REQUIRE(runs.steps_of("whole").size() == 6);
  CHECK(runs.steps_of("parts") == runs.steps_of("whole"));
  runs.run(2, "nearest", {two_stages, "train.steps=6"});
  CHECK(runs.steps_of("nearest") != runs.steps_of("whole"));
}

TEST_CASE("a run rounded at random goes on with sharded optimizer state, bit by bit") {
  const Runs runs;
  const std::string at_random = "numerics.stochastic_rounding=true";
  runs.run(2, "whole", {at_random, "train.steps=6"});
  runs.run(2, "parts", {at_random, "train.steps=3"});
  runs.run(2, "parts", {at_random, "parallel.zero_level=1", "train.steps=6"});
  REQUIRE(runs.steps_of("whole").size() == 6);
  CHECK(runs.steps_of("parts") == runs.steps_of("whole"));
}

TEST_CASE("rounding at random is refused where nothing is rounded") {
  const Runs runs;
  const auto end = on_ranks(
      1, runs.training("run", {"numerics.stochastic_rounding=true", "numerics.precision=fp32"}));
  CHECK(end.exit_code == 2);
  CAPTURE(end.err);
  CHECK(says(end.err, "numerics.stochastic_rounding = true"));
  CHECK(says(end.err, "numerics.precision = fp32"));
  CHECK(says(end.err, "bf16"));
}
