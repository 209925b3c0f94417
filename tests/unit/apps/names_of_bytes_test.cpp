// SPDX-License-Identifier: Apache-2.0
// Names and texts that are not UTF-8, through whole commands.
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/text.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

using namespace trireme::tests;
namespace base = trireme::base;
namespace fs = std::filesystem;

namespace {

/// The command's answer, of which each line is JSON.
std::vector<base::Json> answers(const std::vector<std::string>& command) {
  const auto end = run_trireme(command);
  CAPTURE(command, end.err);
  REQUIRE(end.exit_code == 0);
  CHECK_FALSE(base::first_broken_utf8(end.out));
  CHECK_FALSE(base::first_broken_utf8(end.err));
  std::vector<base::Json> lines;
  for (const auto line : base::split(end.out, '\n')) {
    if (!line.empty()) lines.push_back(base::parse_json(line, "answer").value());
  }
  return lines;
}

void must(const std::vector<std::string>& command) {
  const auto end = run_trireme(command);
  CAPTURE(command, end.err);
  REQUIRE(end.exit_code == 0);
}

}  // namespace

TEST_CASE("a run lives in a folder whose name is not UTF-8") {
  const TemporaryFolder folder;
  const auto place = folder.path() / "w\xe9 #1, 2";
  fs::create_directory(place);
  const auto in = [&](const char* name) { return (place / name).string(); };
  folder.write("w\xe9 #1, 2/text.jsonl", "{\"text\":\"one sum of two\"}\n{\"text\":\"of \xff\"}\n");
  must({"tokenizer", "train", "--input", in("text.jsonl"), "--vocab-size", "260", "--out",
        in("tokenizer.json")});
  must({"data", "prepare", "--input", in("text.jsonl"), "--tokenizer", in("tokenizer.json"),
        "--out", in("o\xe9")});
  const auto facts = answers({"data", "inspect", in("o\xe9"), "--json"});
  const auto shown = run_trireme({"data", "inspect", in("o\xe9")});
  CHECK(contains(shown.out, "w\uFFFD #1, 2/o\uFFFD.bin\n"));
  CHECK(facts.at(0)["path"].get<std::string>().ends_with("w\uFFFD #1, 2/o\uFFFD.bin"));

  const auto quoted = base::format(R"("{}/w\xe9 #1, 2/)", folder.path().string());
  folder.write("w\xe9 #1, 2/c.conf",
               "[data]\ntrain = " + quoted + "o\\xe9\"\ntokenizer = " + quoted +
                   "tokenizer.json\"\n[run]\ndirectory = " + quoted + "r\\xe9\"\nname = \xe9\n" +
                   "[model]\narchitecture = gpt2\nhidden_size = 8\nnum_hidden_layers = 1\n"
                   "num_attention_heads = 1\nmax_position_embeddings = 64\n[train]\nsteps = 2\n"
                   "sequence_length = 4\n[checkpoint]\nevery_steps = 1\n");
  must({"train", in("c.conf")});
  const auto run = in("r\xe9");
  // The run's own file has all of it, in UTF-8, and goes on from any folder.
  must({"train", run + "/config.resolved.conf", "--set", "train.steps=3"});
  for (const auto* command : {"list", "verify"}) {
    for (const auto& line : answers({"checkpoint", command, run, "--json"})) {
      CHECK(contains(line["folder"].get<std::string>(), "r\uFFFD"));
    }
  }
  CHECK(run_trireme({"config", "show", run, "--get", "run.name"}).out == "\xe9\n");

  const auto prompts = folder.write("prompts.txt", "\xEF\xBB\xBFsum\r\nof \xe9\r\n").string();
  const auto lines =
      answers({"generate", "--weights", run, "--max-tokens", "2", "--prompts", prompts, "--json"});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["prompt"] == "sum");
  CHECK(lines[1]["prompt"] == "of \uFFFD");
  // A step that was taken elsewhere finds the tokenizer by the path that it recorded.
  const auto step =
      answers({"checkpoint", "list", run, "--json"}).at(0)["folder"].get<std::string>();
  const auto copy = folder.path() / fs::path(step).filename();
  fs::copy(fs::path(run) / "checkpoints" / fs::path(step).filename(), copy,
           fs::copy_options::recursive);
  CHECK(answers({"generate", "--weights", copy.string(), "--max-tokens", "1", "--prompt", "sum",
                 "--json"})
            .size() == 1);
}

TEST_CASE("what preparing changes or leaves out is told") {
  const TemporaryFolder folder;
  const auto golden = std::string(TRIREME_SOURCE_DIR) + "/tests/golden/tokenizer/llama3.json";
  const auto input =
      folder.write("in.jsonl", "{\"text\":\"a <|endoftext|>\"}\n{\"text\":\"\xff\",\"n\":NaN}\n{\n")
          .string();
  const auto out = (folder.path() / "out").string();
  const std::vector<std::string> command{"data",        "prepare", "--input", input,
                                         "--tokenizer", golden,    "--out",   out};
  const auto refused = run_trireme(command);
  CHECK(refused.exit_code == 6);
  CHECK(contains(refused.err, "in.jsonl' line 3: not valid JSON at line 1, column "));
  auto skipping = command;
  skipping.emplace_back("--skip-bad-lines");
  const auto end = run_trireme(skipping);
  CAPTURE(end.err);
  CHECK(end.exit_code == 0);
  CHECK(contains(end.err, "1 document holds bytes that are not UTF-8"));
  CHECK(contains(end.err, "1 line left out (--skip-bad-lines), the first for this: "));
  CHECK(contains(end.err, "every document begins with <|im_start|>"));
  CHECK(contains(end.err, "1 document holds special tokens in the text"));
  const auto facts = run_trireme({"data", "inspect", out, "--json"});
  CHECK(contains(facts.out, "\"begin_of_text\":[1024]"));
}
