// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace trireme::tests;
namespace base = trireme::base;

namespace {

const std::string golden = std::string(TRIREME_SOURCE_DIR) + "/tests/golden/tokenizer/llama3.json";

ProgramEnd run_with_input(std::vector<std::string> arguments, std::string in) {
  auto start = trireme_start(std::move(arguments));
  start.in = std::move(in);
  return run_program(start);
}

std::string corpus() {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += "Entry " + std::to_string(i) + "\n   is a word with a meaning.\n\n";
  }
  return text;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("text is encoded to ids and decoded to the same text") {
  const std::string text = "It's 12345 caf\u00E9s,\r\n\t\u4E2D\u6587 \U0001F600<|endoftext|>\n";
  const auto ids = run_with_input({"tokenizer", "encode", "--tokenizer", golden}, text);
  CHECK(ids.exit_code == 0);
  CHECK(ids.err.empty());
  CHECK(ids.out.find_first_not_of("0123456789 ") == ids.out.size() - 1);
  const auto plain =
      run_with_input({"tokenizer", "encode", "--tokenizer", golden, "--no-special-tokens"}, text);
  // The template's begin-of-text token is the difference.
  CHECK(ids.out.substr(ids.out.find(' ') + 1) == plain.out);

  CHECK(run_with_input({"tokenizer", "decode", "--tokenizer", golden}, plain.out).out == text);
  const auto skipped = run_with_input(
      {"tokenizer", "decode", "--tokenizer", golden, "--skip-special-tokens"}, ids.out);
  CHECK(skipped.out == "It's 12345 caf\u00E9s,\r\n\t\u4E2D\u6587 \U0001F600\n");
}

TEST_CASE("nothing encodes to nothing") {
  const auto end =
      run_with_input({"tokenizer", "encode", "--tokenizer", golden, "--no-special-tokens"}, "");
  CHECK(end.exit_code == 0);
  CHECK(end.out.empty());
}

TEST_CASE("ids that are none are refused with exit code 2") {
  const auto word = run_with_input({"tokenizer", "decode", "--tokenizer", golden}, "1 two 3");
  CHECK(word.exit_code == 2);
  CHECK(contains(word.err, "'two' is no token id"));
  const auto large = run_with_input({"tokenizer", "decode", "--tokenizer", golden}, "1 99999");
  CHECK(large.exit_code == 2);
  CHECK(contains(large.err, "id 99999 is outside this tokenizer's vocabulary of 1029"));
}

TEST_CASE("a tokenizer that cannot be read ends with exit code 6") {
  const TemporaryFolder folder;
  const auto absent = run_with_input({"tokenizer", "encode", "--tokenizer", "absent.json"}, "");
  CHECK(absent.exit_code == 6);
  CHECK(contains(absent.err, "cannot open 'absent.json'"));
  const auto path = folder.write("bad.json", R"({"version":"1.0","model":{"type":"WordPiece"}})");
  const auto bad = run_with_input({"tokenizer", "encode", "--tokenizer", path.string()}, "");
  CHECK(bad.exit_code == 6);
  CHECK(contains(bad.err, "the model 'WordPiece' is not one that Trireme knows"));
}

TEST_CASE("a tokenizer is trained, data prepared with it and inspected") {
  const TemporaryFolder folder;
  const auto text = folder.write("text/corpus.txt", corpus()).parent_path().string();
  const auto tokenizer = (folder.path() / "tokenizer.json").string();
  const auto train = run_trireme({"tokenizer", "train", "--input", text, "--vocab-size", "300",
                                  "--out", tokenizer, "--threads", "2"});
  CAPTURE(train.err);
  REQUIRE(train.exit_code == 0);
  CHECK(train.out.empty());
  CHECK(contains(train.err, "300 tokens from"));
  // No drawing where no terminal is.
  CHECK_FALSE(contains(train.err, "\r"));

  const auto prefix = (folder.path() / "out").string();
  const auto prepare =
      run_trireme({"data", "prepare", "--input", text, "--tokenizer", tokenizer, "--out", prefix,
                   "--document-separator", "blank-line", "--validation-fraction", "0.1"});
  CAPTURE(prepare.err);
  REQUIRE(prepare.exit_code == 0);
  const auto inspect = run_trireme({"data", "inspect", prefix, "--json"});
  REQUIRE(inspect.exit_code == 0);
  const auto facts = base::parse_json(inspect.out, "stdout").value();
  CHECK(facts["format"] == "Megatron .bin/.idx");
  CHECK(facts["vocab_size"] == 300);
  CHECK(facts["end_of_text"] == 0);
  CHECK(facts["smallest_id"] == 0);
  const auto held_out =
      base::parse_json(run_trireme({"data", "inspect", prefix + ".validation", "--json"}).out, "")
          .value();
  CHECK(facts["documents"].get<int>() + held_out["documents"].get<int>() == 300);

  const auto shown = run_trireme(
      {"data", "inspect", prefix + ".bin", "--tokenizer", tokenizer, "--documents", "1"});
  CHECK(contains(shown.out, "is a word with a meaning.<|endoftext|>\n"));

  auto damaged = bytes_of(prefix + ".bin");
  folder.write("out.bin", damaged.substr(1));
  const auto refused = run_trireme({"data", "inspect", prefix});
  CHECK(refused.exit_code == 6);
  CHECK(contains(refused.err, "out.bin': size is "));
}

TEST_CASE("wrong arguments of data commands are refused before anything is written") {
  const TemporaryFolder folder;
  const auto text = folder.write("a.txt", "text").string();
  const auto prefix = (folder.path() / "out").string();
  const auto fraction = run_trireme({"data", "prepare", "--input", text, "--tokenizer", golden,
                                     "--out", prefix, "--validation-fraction", "1.5"});
  CHECK(fraction.exit_code == 2);
  CHECK(contains(fraction.err, "--validation-fraction 1.5"));
  const auto threads = run_trireme({"data", "prepare", "--input", text, "--tokenizer", golden,
                                    "--out", prefix, "--threads", "0"});
  CHECK(threads.exit_code == 2);
  const auto kind = run_trireme({"tokenizer", "train", "--input", text, "--vocab-size", "300",
                                 "--out", prefix, "--pre-tokenizer", "bert"});
  CHECK(kind.exit_code == 2);
  CHECK(contains(kind.err, "bert"));
  const auto absent = run_trireme(
      {"data", "prepare", "--input", "absent.txt", "--tokenizer", golden, "--out", prefix});
  CHECK(absent.exit_code == 6);
  CHECK_FALSE(std::filesystem::exists(prefix + ".bin"));
}

TEST_CASE("data prepare writes over nothing that it reads") {
  const TemporaryFolder folder;
  const auto lines = folder.write("story.json", "{\"text\": \"once\"}\n");
  const auto tokenizer = folder.path() / "words.json";
  std::filesystem::copy_file(golden, tokenizer);
  const auto size = std::filesystem::file_size(tokenizer);
  for (const auto* prefix : {"story", "words"}) {
    const auto refused =
        run_trireme({"data", "prepare", "--input", lines.string(), "--tokenizer",
                     tokenizer.string(), "--out", (folder.path() / prefix).string()});
    CHECK(refused.exit_code == 2);
    CHECK(contains(refused.err, "(the command reads it); choose another prefix"));
  }
  CHECK(std::filesystem::file_size(tokenizer) == size);
  CHECK(std::filesystem::file_size(lines) == 17);
}
