// SPDX-License-Identifier: Apache-2.0
// `trireme eval`: transformers' own losses, the same numbers at every layout, and what is said
// when there is nothing to evaluate.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

base::Json evaluated(int ranks, const std::vector<std::string>& arguments,
                     const std::vector<std::string>& settings) {
  std::vector<std::string> all{"-q", "eval", "--json"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto out = done_on_ranks(ranks, with_settings(all, settings));
  return base::value_or_throw(base::parse_json(out, "stdout"));
}

double number(const base::Json& json, const char* key) {
  return json.at(key).get<double>();
}

float golden_loss(const fs::path& model) {
  const auto file =
      base::value_or_throw(huggingface::SafetensorsFolder::open(model / "expected.safetensors"));
  float loss = 0;
  base::success_or_throw(
      file.read_box("loss", layout::whole({1}), device::Tensor(&loss, device::DType::f32, {1})));
  return loss;
}

}  // namespace

TEST_CASE("eval on transformers' weights and tokens gives transformers' loss") {
  for (const std::string name : {"gpt2-tied", "llama-grouped-scaled", "qwen3-wide-heads"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const auto model = golden_model(name);
    const auto lists = base::value_or_throw(base::read_json_file(model / "tokens.json"));
    std::vector<std::string> arguments{"--weights", model.string()};
    for (std::size_t row = 0; row < lists.size(); ++row) {
      const auto prefix = folder.path() / base::format("row{}", row);
      write_tokens(prefix, lists[row].get<std::vector<std::int32_t>>());
      arguments.insert(arguments.end(), {"--data", prefix.string()});
    }
    const auto length = lists[0].size() - 1;
    const auto found = evaluated(
        2, arguments, {base::format("train.sequence_length={}", length), "parallel.tensor=2"});
    CHECK(found["tokens"] == lists.size() * length);
    CHECK(found["sequences"] == lists.size());
    CHECK(found["step"].is_null());
    CHECK(found["bits_per_byte"].is_null());
    const double expected = golden_loss(model);
    CHECK(std::abs(number(found, "loss") - expected) <= 1e-5 * expected);
    CHECK(number(found, "perplexity") == Approx(std::exp(expected)).epsilon(1e-4));
  }
}

TEST_CASE("eval gives the same numbers at every layout, and those of training's own evaluation") {
  const TemporaryFolder folder;
  const auto model = golden_model("llama-grouped-scaled");
  const auto run = (folder.path() / "run").string();
  const auto train = (folder.path() / "train").string();
  const auto held_out = (folder.path() / "held-out").string();
  write_tokens(train, made_up_tokens(900, 71));
  // 7 samples of 12 and some tokens over: no batch is full at any layout.
  write_tokens(held_out, made_up_tokens(90, 71));
  const std::vector<std::string> settings{"run.directory=" + run, "data.train=" + train,
                                          "data.validation=" + held_out, "train.sequence_length=12",
                                          "numerics.threads=1"};
  auto training = settings;
  training.insert(training.end(), {"model.from=" + model.string(), "train.global_batch=4",
                                   "train.steps=3", "train.eval_every=3", "train.eval_batches=0"});
  done_on_ranks(1, with_settings({"-q", "train"}, training));
  const auto lines = metrics(run, "eval");
  REQUIRE(lines.size() == 1);
  const auto expected = lines[0]["loss"].get<double>();

  const std::vector<std::pair<int, std::vector<std::string>>> layouts{
      {1, {}},
      {1, {"train.micro_batch=3"}},
      {2, {"parallel.tensor=2", "parallel.sequence=true"}},
      {2, {"parallel.pipeline=2"}},
      {2, {"train.micro_batch=2"}},
      {4, {"parallel.tensor=2", "parallel.pipeline=2"}},
      {4, {"parallel.tensor=2", "train.micro_batch=2"}}};
  for (const auto& [ranks, layout] : layouts) {
    CAPTURE(ranks, layout);
    auto all = settings;
    all.insert(all.end(), layout.begin(), layout.end());
    const auto found = evaluated(ranks, {}, all);
    CHECK(found["step"] == 3);
    CHECK(found["tokens"] == 84);
    CHECK(found["sequences"] == 7);
    CHECK(std::abs(number(found, "loss") - expected) <= 1e-5 * expected);
  }
}

TEST_CASE("a whole validation takes each source once, and weights its mean") {
  const TemporaryFolder folder;
  const auto model = golden_model("llama-grouped-scaled");
  const auto run = (folder.path() / "run").string();
  const auto train = (folder.path() / "train").string();
  const auto small = (folder.path() / "small").string();
  const auto large = (folder.path() / "large").string();
  write_tokens(train, made_up_tokens(900, 71));
  // 7 and 41 samples of 12, of unlike tokens.
  write_tokens(small, made_up_tokens(90, 71));
  write_tokens(large, made_up_tokens(500, 11));
  const std::vector<std::string> settings{"run.directory=" + run, "data.train=" + train,
                                          "data.validation=" + small + ":0.75, " + large + ":0.25",
                                          "train.sequence_length=12", "numerics.threads=1"};
  const auto trained = [&](int steps, int batches) {
    auto training = settings;
    training.insert(
        training.end(),
        {"model.from=" + model.string(), "train.global_batch=4",
         base::format("train.steps={}", steps), base::format("train.eval_every={}", steps),
         base::format("train.eval_batches={}", batches), "optimizer.curve=constant"});
    done_on_ranks(1, with_settings({"-q", "train"}, training));
    return metrics(run, "eval").back();
  };
  const auto logged = trained(3, 0);
  CHECK(logged["sequences"] == 48);
  CHECK(logged["all_sequences"] == 48);
  CHECK(logged["tokens"] == 48 * 12);

  const auto alone = [&](const std::string& source) {
    return number(evaluated(1, {"--data", source}, settings), "loss");
  };
  const double of_small = alone(small);
  const double of_large = alone(large);
  // Shares of samples would show.
  CHECK(std::abs(of_small - of_large) > 1e-4);
  const double expected = 0.75 * of_small + 0.25 * of_large;
  CHECK(std::abs(number(logged, "loss") - expected) <= 1e-6 * expected);
  for (const int ranks : {1, 2}) {
    const auto found = evaluated(ranks, {}, settings);
    CHECK(found["sequences"] == 48);
    CHECK(std::abs(number(found, "loss") - expected) <= 1e-6 * expected);
    REQUIRE(found["sources"].size() == 2);
    CHECK(number(found["sources"][0], "share") == 0.75);
    CHECK(std::abs(number(found["sources"][0], "loss") - of_small) <= 1e-6 * expected);
    CHECK(found["sources"][1]["tokens"] == 41 * 12);
    CHECK_FALSE(found.contains("sequences_of_run"));
  }
  // An evaluation of a part says so, and eval says that the run's is one.
  const auto part = trained(6, 2);
  CHECK(part["sequences"] == 8);
  CHECK(part["all_sequences"] == 48);
  CHECK(evaluated(1, {}, settings)["sequences_of_run"] == 8);
}

TEST_CASE("eval counts the bytes of text that the tokens stand for") {
  const TemporaryFolder folder;
  const auto text = folder.path() / "text.txt";
  std::string words;
  for (int line = 0; line < 60; ++line) {
    words += base::format("Zeile {}: Bäume stehen dort, wo {} Bäume standen.\n", line, line * 7);
  }
  base::write_file_durably(text, words);
  const auto tokenizer = (folder.path() / "tokenizer.json").string();
  const auto prefix = (folder.path() / "tokens").string();
  done_on_ranks(1, {"-q", "tokenizer", "train", "--input", text.string(), "--vocab-size", "300",
                    "--out", tokenizer});
  done_on_ranks(1, {"-q", "data", "prepare", "--input", text.string(), "--tokenizer", tokenizer,
                    "--out", prefix});
  const auto facts = base::value_or_throw(
      base::parse_json(done_on_ranks(1, {"data", "inspect", prefix, "--json"}), "stdout"));
  const auto tokens = facts["tokens"].get<std::int64_t>();
  const auto run = (folder.path() / "run").string();
  // One sample of everything: all is predicted but the first token.
  const std::vector<std::string> settings{"run.directory=" + run,
                                          "data.train=" + prefix,
                                          "data.validation=" + prefix,
                                          "data.tokenizer=" + tokenizer,
                                          base::format("train.sequence_length={}", tokens - 1),
                                          "model.architecture=llama",
                                          "model.hidden_size=8",
                                          "model.num_hidden_layers=1",
                                          "model.num_attention_heads=2",
                                          "model.intermediate_size=8",
                                          "numerics.threads=1"};
  done_on_ranks(1, with_settings({"-q", "train", "--set", "train.steps=1"}, settings));
  const auto found = evaluated(1, {}, settings);
  // The first token is the letter Z, or begins with it.
  const auto bytes = found["bytes"].get<std::int64_t>();
  const auto size = static_cast<std::int64_t>(words.size());
  CHECK(bytes < size);
  CHECK(bytes >= size - 6);
  CHECK(found["tokens"] == tokens - 1);
  const auto bits = number(found, "loss") * static_cast<double>(tokens - 1) / std::log(2.0);
  CHECK(number(found, "bits_per_byte") == Approx(bits / static_cast<double>(bytes)).epsilon(1e-12));
  // The checkpoint knows its tokenizer by itself.
  const auto again =
      evaluated(1, {"--weights", run, "--data", prefix},
                {base::format("train.sequence_length={}", tokens - 1), "numerics.threads=1"});
  CHECK(again["bytes"] == bytes);
  CHECK(number(again, "bits_per_byte") == number(found, "bits_per_byte"));
  const auto shown = done_on_ranks(1, with_settings({"-q", "eval"}, settings));
  CHECK(says(shown, "bits per byte"));
  CHECK(says(shown, "perplexity"));
}

TEST_CASE("eval says what is missing, and ends with 6") {
  const TemporaryFolder folder;
  const auto held_out = (folder.path() / "held-out").string();
  write_tokens(held_out, made_up_tokens(60, 71));
  const auto run = "run.directory=" + (folder.path() / "none").string();
  for (const int ranks : {1, 2}) {
    const auto end = on_ranks(ranks, {"eval", "--data", held_out, "--set", run});
    CAPTURE(end.err);
    CHECK(end.exit_code == 6);
    CHECK(says(end.err, "no weights to evaluate"));
    CHECK(says(end.err, "--weights names a step, a run or a Hugging Face folder"));
  }
  const auto model = golden_model("llama-grouped-scaled").string();
  const auto gone = on_ranks(1, {"eval", "--weights", model, "--data", held_out + "-gone"});
  CHECK(gone.exit_code == 6);
  CHECK(says(gone.err, "held-out-gone"));
  const auto nothing = on_ranks(1, {"eval", "--weights", model});
  CHECK(nothing.exit_code == 2);
  CHECK(says(nothing.err, "data.validation is empty"));
}
