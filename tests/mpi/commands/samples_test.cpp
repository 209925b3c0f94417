// SPDX-License-Identifier: Apache-2.0
// Samples of runs as people ask for them: what they say when they cannot be made, and that other
// commands agree with them.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "mpi/commands/ranks.hpp"
#include "mpi/commands/text_model.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

/// A run of two steps over a model with 32 positions; an evaluation behind each.
struct Place {
  TemporaryFolder folder;
  TextModel made = make_text_model(folder.path());
  fs::path prompts = folder.write("prompts.txt", "line 1 of\n\na text has\n");
  fs::path run = folder.path() / "run";

  std::vector<std::string> settings(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"run.directory=" + run.string(),
                                 "model.from=" + made.model.string(),
                                 "data.train=" + made.tokens.string(),
                                 "data.validation=" + made.tokens.string(),
                                 "data.tokenizer=" + (made.model / "tokenizer.json").string(),
                                 "train.sequence_length=16",
                                 "train.global_batch=4",
                                 "train.steps=2",
                                 "train.eval_every=1",
                                 "train.eval_batches=1",
                                 "train.sample_prompts=" + prompts.string(),
                                 "train.sample_tokens=8",
                                 "numerics.threads=1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

std::string text_of(const fs::path& path) {
  return base::value_or_throw(base::read_text_file(path));
}

}  // namespace

TEST_CASE("a run's newest samples are what trireme generate prints, and its page shows them") {
  const Place place;
  done_on_ranks(2, with_settings({"-q", "train"}, place.settings({"parallel.pipeline=2",
                                                                  "train.sample_temperature=0.7",
                                                                  "train.seed=99"})));
  const auto lines = metrics(place.run, "sample");
  REQUIRE(lines.size() == 2);
  const auto& samples = lines.back()["samples"];
  const auto printed =
      done_on_ranks(1, {"-q", "generate", "--weights", place.run.string(), "--prompts",
                        place.prompts.string(), "--max-tokens", "8", "--temperature", "0.7",
                        "--seed", base::format("{}", lines.back()["seed"].get<int>())});
  CHECK(printed == base::format("--- 1\nline 1 of{}\n--- 2\na text has{}\n",
                                samples[0]["text"].get<std::string>(),
                                samples[1]["text"].get<std::string>()));
  CHECK(says(text_of(place.run / "report.html"), "id=\"samples\""));
}

TEST_CASE("plan counts the decoder of samples, as the run does") {
  const Place place;
  const auto settings = place.settings({"parallel.pipeline=2", "train.sample_tokens=20"});
  done_on_ranks(2, with_settings({"-q", "train"}, settings));
  // The run's own tokenizer would do: the plan needs none of the folders of the model.
  const auto planned = [&](const std::vector<std::string>& asked) {
    return base::Json::parse(
        done_on_ranks(1, with_settings({"plan", "--ranks", "2", "--json"}, asked)));
  };
  const auto plan = planned(settings);
  const auto without = planned(place.settings({"parallel.pipeline=2", "train.sample_prompts="}));
  for (int rank = 0; rank < 2; ++rank) {
    const auto& bytes = plan["ranks"][static_cast<std::size_t>(rank)]["bytes"];
    const auto log = text_of(place.run / "log" / base::format("r{:04}.txt", rank));
    CHECK(says(log, base::format("in all {} bytes", bytes["total"].get<std::int64_t>())));
    // Keys and values: a layer on each of the two ranks, two slots of a prompt and 20 more.
    CHECK(bytes["activations"] >
          without["ranks"][static_cast<std::size_t>(rank)]["bytes"]["activations"]);
    // Parameters are the run's own.
    CHECK(bytes["gradients"] ==
          without["ranks"][static_cast<std::size_t>(rank)]["bytes"]["gradients"]);
  }
}

TEST_CASE("samples take the prompts that trireme generate takes: mark, line ends, other bytes") {
  const Place place;
  const auto prompts =
      place.folder.write("odd.txt", "\xEF\xBB\xBFline 1 of\r\n\r\na t\xE9xt has\r\n").string();
  const auto end =
      on_ranks(1, with_settings({"train"}, place.settings({"train.sample_prompts=" + prompts})));
  CHECK(end.exit_code == 0);
  CHECK(says(end.out + end.err, "1 of 2 prompts hold bytes that are not UTF-8"));
  const auto lines = metrics(place.run, "sample");
  REQUIRE(lines.size() == 2);
  const auto& samples = lines.back()["samples"];
  REQUIRE(samples.size() == 2);
  CHECK(samples[0]["prompt"] == "line 1 of");
  CHECK(samples[1]["prompt"] == "a t\uFFFDxt has");
}

TEST_CASE("samples that cannot be made end a run before it trains, with what to do") {
  const Place place;
  const auto empty = place.folder.write("empty.txt", "\n\n").string();
  const auto list = place.folder.write("list.json", "[\"a\", 3]").string();
  const auto wide = place.folder
                        .write("wide.txt", std::string("\xFF\xFE"
                                                       "a\0\n\0b\0\n\0",
                                                       10))
                        .string();
  std::string lines;
  for (int line = 0; line < 65; ++line) lines += "a\n";
  const auto many = place.folder.write("many.txt", lines).string();
  struct Mistake {
    std::vector<std::string> settings;
    std::vector<std::string> words;
  };
  const std::vector<Mistake> mistakes{
      {{"data.tokenizer=", "model.vocab_size=300"}, {"train.sample_prompts", "data.tokenizer"}},
      {{"data.tokenizer=/nowhere/tokenizer.json"}, {"/nowhere/tokenizer.json"}},
      {{"train.sample_tokens=30"},
       {"train.sample_tokens = 30", "model.max_position_embeddings = 32", "longest prompt"}},
      {{"train.sample_prompts=" + empty}, {"empty.txt", "no prompt"}},
      {{"train.sample_prompts=" + list}, {"list.json", "not of texts alone"}},
      {{"train.sample_prompts=" + wide}, {"wide.txt", "is UTF-16", "iconv"}},
      {{"train.sample_prompts=" + many}, {"65 prompts", "at most 64"}},
      {{"train.sample_prompts=/nowhere/prompts.txt"},
       {"/nowhere/prompts.txt", "one prompt a line"}},
      {{"train.eval_every=0"}, {"train.sample_prompts", "train.eval_every"}}};
  for (const auto& mistake : mistakes) {
    CAPTURE(mistake.settings);
    for (const int ranks : {1, 2}) {
      const auto end =
          on_ranks(ranks, with_settings({"-q", "train"}, place.settings(mistake.settings)));
      INFO(end.err);
      CHECK(end.exit_code == 2);
      for (const auto& words : mistake.words) CHECK(says(end.err, words));
      CHECK_FALSE(fs::exists(place.run / "metrics.jsonl"));
    }
  }
}
