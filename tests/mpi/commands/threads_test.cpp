// SPDX-License-Identifier: Apache-2.0
// `numerics.deterministic`: what the number of threads may change.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("with numerics.deterministic no number of threads changes a bit of training") {
  const TemporaryFolder folder;
  const auto tokens = (folder.path() / "tokens").string();
  write_tokens(tokens, made_up_tokens(4000, 300));
  const auto trained = [&](const std::string& precision, const std::string& threads) {
    const auto run = folder.path() / (precision + threads);
    // Products of 384 rows: several tiles, whose sums run over up to 384 numbers.
    done_on_ranks(
        1, with_settings(
               {"-q", "train"},
               {"run.directory=" + run.string(), "data.train=" + tokens, "model.architecture=llama",
                "model.vocab_size=300", "model.hidden_size=96", "model.num_hidden_layers=2",
                "model.num_attention_heads=4", "model.intermediate_size=260",
                "train.sequence_length=192", "train.micro_batch=2", "train.global_batch=4",
                "train.steps=3", "numerics.precision=" + precision, "numerics.threads=" + threads,
                "numerics.deterministic=true"}));
    std::vector<std::pair<double, double>> steps;
    for (const auto& line : metrics(run, "train")) {
      steps.emplace_back(line["loss"].get<double>(), line["grad_norm"].get<double>());
    }
    return steps;
  };
  for (const std::string precision : {"fp32", "bf16"}) {
    CAPTURE(precision);
    const auto one = trained(precision, "1");
    REQUIRE(one.size() == 3);
    CHECK(trained(precision, "2") == one);
    CHECK(trained(precision, "5") == one);
  }
}
