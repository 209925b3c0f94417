// SPDX-License-Identifier: Apache-2.0
// `numerics.precision = fp8` through a run's life: refusals, and going on from a checkpoint.
#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::vector<std::string> training(const std::filesystem::path& run, const std::string& tokens,
                                  std::vector<std::string> more) {
  std::vector<std::string> settings{
      "run.directory=" + run.string(), "data.train=" + tokens,    "model.architecture=llama",
      "model.vocab_size=300",          "model.hidden_size=64",    "model.num_hidden_layers=2",
      "model.num_attention_heads=4",   "model.head_dim=16",       "model.intermediate_size=96",
      "train.sequence_length=32",      "train.micro_batch=2",     "train.global_batch=8",
      "numerics.precision=fp8",        "numerics.threads=1",      "optimizer.warmup_steps=0",
      "optimizer.curve=constant",      "checkpoint.every_steps=3"};
  settings.insert(settings.end(), more.begin(), more.end());
  return with_settings({"-q", "train"}, settings);
}

std::vector<std::pair<double, double>> steps_of(const std::filesystem::path& run) {
  std::vector<std::pair<double, double>> steps;
  for (const auto& line : metrics(run, "train")) {
    steps.emplace_back(line["loss"].get<double>(), line["grad_norm"].get<double>());
  }
  return steps;
}

}  // namespace

TEST_CASE("a run in FP8 that goes on from a checkpoint has the bits of one that never stopped") {
  const TemporaryFolder folder;
  const auto tokens = (folder.path() / "tokens").string();
  write_tokens(tokens, made_up_tokens(4000, 300));
  const auto whole = folder.path() / "whole";
  const auto parts = folder.path() / "parts";
  const std::string tensor = "parallel.tensor=2";
  done_on_ranks(2, training(whole, tokens, {tensor, "train.steps=6"}));
  done_on_ranks(2, training(parts, tokens, {tensor, "train.steps=3"}));
  done_on_ranks(2, training(parts, tokens, {tensor, "train.steps=6"}));
  REQUIRE(steps_of(whole).size() == 6);
  CHECK(steps_of(parts) == steps_of(whole));
  // Nothing of FP8 is in a checkpoint: it says what one in bf16 says.
  const auto plain = folder.path() / "plain";
  done_on_ranks(2, training(plain, tokens, {tensor, "train.steps=6", "numerics.precision=bf16"}));
  REQUIRE(steps_of(plain).size() == 6);
  CHECK(steps_of(plain) != steps_of(whole));
}

TEST_CASE("widths that FP8 products do not take are refused with the next one that they do") {
  const TemporaryFolder folder;
  const auto tokens = (folder.path() / "tokens").string();
  write_tokens(tokens, made_up_tokens(400, 300));
  const auto end =
      on_ranks(1, training(folder.path() / "run", tokens, {"model.intermediate_size=100"}));
  CHECK(end.exit_code == 2);
  CAPTURE(end.err);
  CHECK(says(end.err, "numerics.precision = fp8"));
  CHECK(says(end.err, "model.intermediate_size"));
  CHECK(says(end.err, "112"));
}
