// SPDX-License-Identifier: Apache-2.0
// `trireme generate` as people start it: many prompts, stop texts, prompts from standard input.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/data/tokenizer.hpp"

#include "mpi/commands/ranks.hpp"
#include "mpi/commands/text_model.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

using namespace trireme;
using namespace trireme::tests;

namespace {

const std::vector<std::string> prompts{"line 1 of", "a text has many words", "7",
                                       "words words words words of a"};

std::vector<base::Json> lines_of(const std::string& out) {
  std::vector<base::Json> lines;
  for (std::size_t begin = 0; begin < out.size();) {
    const auto end = out.find('\n', begin);
    lines.push_back(base::value_or_throw(base::parse_json(out.substr(begin, end - begin), "out")));
    begin = end + 1;
  }
  return lines;
}

std::vector<std::string> asking(const TextModel& made, const std::vector<std::string>& more) {
  std::vector<std::string> all{"generate",     "--weights", made.model.string(),
                               "--max-tokens", "8",         "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Answers to each prompt alone.
std::vector<std::string> answers_alone(const TextModel& made) {
  std::vector<std::string> answers;
  for (const auto& prompt : prompts) {
    const auto lines = lines_of(done_on_ranks(1, asking(made, {"--prompt", prompt})));
    answers.push_back(lines.at(0)["text"].get<std::string>());
  }
  return answers;
}

bool is_plain(char byte) {
  return byte >= ' ' && byte <= '~';
}

/// A stop text that begins in one token of the answer and ends in the next, if there is one.
std::optional<std::string> stop_across_tokens(const data::Tokenizer& tokenizer,
                                              const base::Json& line) {
  std::string answer;
  std::vector<std::size_t> ends;
  for (const auto& token : line["tokens"]) {
    const auto id = token.get<std::int32_t>();
    answer += tokenizer.decode_bytes({&id, 1});
    ends.push_back(answer.size());
  }
  // A stream has the bytes that a text replaces where they are no UTF-8.
  answer.erase(std::find_if_not(answer.begin(), answer.end(), is_plain), answer.end());
  for (const auto end : ends) {
    // Something is told before it.
    if (end < 2 || end >= answer.size()) continue;
    auto stop = answer.substr(end - 1, 2);
    if (answer.find(stop) == end - 1) return stop;
  }
  return std::nullopt;
}

std::vector<std::string> prompt_options() {
  std::vector<std::string> options;
  for (const auto& prompt : prompts) options.insert(options.end(), {"--prompt", prompt});
  return options;
}

ProgramEnd asked_by_input(int ranks, const std::vector<std::string>& arguments,
                          const std::string& input) {
  std::vector<std::string> all{std::to_string(ranks), TRIREME_EXECUTABLE};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run_program({.program = TRIREME_SOURCE_DIR "/tests/support/mpirun",
                      .arguments = all,
                      .in = input,
                      .timeout_seconds = 120});
}

}  // namespace

TEST_CASE("several prompts are answered as each alone, at any batch and layout") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto alone = answers_alone(made);
  const std::vector<std::pair<int, std::vector<std::string>>> ways{
      {1, {}},
      {1, {"--batch", "1"}},
      {1, {"--batch", "3"}},
      {2, {"--tensor-parallel", "2", "--batch", "2"}},
      {2, {"--pipeline-parallel", "2", "--batch", "1"}},
      {2, {}}};
  for (const auto& [ranks, way] : ways) {
    CAPTURE(ranks, way);
    auto options = prompt_options();
    options.insert(options.end(), way.begin(), way.end());
    const auto lines = lines_of(done_on_ranks(ranks, asking(made, options)));
    REQUIRE(lines.size() == prompts.size());
    for (std::size_t index = 0; index < lines.size(); ++index) {
      CHECK(lines[index]["prompt"] == prompts[index]);
      CHECK(lines[index]["text"] == alone[index]);
    }
  }
  // As many as do not fit into one step, one a line, and as a JSON list.
  std::string list;
  for (std::size_t index = 0; index < 40; ++index) list += prompts[index % prompts.size()] + "\n";
  const auto many = asked_by_input(2, asking(made, {"--prompts", "-"}), list);
  INFO(many.err);
  REQUIRE(many.exit_code == 0);
  const auto lines = lines_of(many.out);
  REQUIRE(lines.size() == 40);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    CHECK(lines[index]["text"] == alone[index % prompts.size()]);
  }
  const auto json =
      asked_by_input(1, asking(made, {"--prompts", "-"}), base::json_text(base::Json(prompts)));
  CHECK(lines_of(json.out).size() == prompts.size());
  const auto nothing = asked_by_input(2, asking(made, {"--prompts", "-"}), "");
  CHECK(nothing.exit_code == 2);
  CHECK(says(nothing.err, "there is no prompt"));
}

TEST_CASE("a stop text ends an answer before it, streamed or not") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto alone = answers_alone(made);
  int streams = 0;
  for (std::size_t index = 0; index < prompts.size(); ++index) {
    // Two bytes from the middle: a stop text may begin and end inside of tokens.
    const auto& answer = alone[index];
    if (answer.size() < 4) continue;
    const auto stop = answer.substr(answer.size() / 2, 2);
    if (stop.find('\xEF') != std::string::npos || (stop[0] & 0x80) != 0 || (stop[1] & 0x80) != 0) {
      continue;
    }
    CAPTURE(answer, stop);
    const auto expected = answer.substr(0, answer.find(stop));
    const auto lines =
        lines_of(done_on_ranks(1, asking(made, {"--prompt", prompts[index], "--stop", stop})));
    CHECK(lines.at(0)["text"] == expected);
    CHECK(lines.at(0)["ending"] == "stop");
    // A stream has the bytes that a text replaces where they are no UTF-8.
    if (expected.find("\xEF\xBF\xBD") != std::string::npos) continue;
    ++streams;
    const auto streamed =
        done_on_ranks(2, {"generate", "--weights", made.model.string(), "--max-tokens", "8",
                          "--prompt", prompts[index], "--stop", stop, "--pipeline-parallel", "2"});
    CHECK(streamed == prompts[index] + expected + "\n");
  }
  CHECK(streams > 0);
  const auto empty = on_ranks(1, asking(made, {"--prompt", "line", "--stop", ""}));
  CHECK(empty.exit_code == 2);
  CHECK(says(empty.err, "--stop is empty"));
}

TEST_CASE("a stream shows nothing of a stop text, of which some tokens come before others") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto tokenizer = base::value_or_throw(data::Tokenizer::load(made.model / "tokenizer.json"));
  std::vector<std::string> many;
  for (int index = 0; index < 24; ++index) {
    many.insert(many.end(), {"--prompt", base::format("line {} of", index)});
  }
  int streams = 0;
  for (const auto& line : lines_of(done_on_ranks(1, asking(made, many)))) {
    const auto stop = stop_across_tokens(tokenizer, line);
    if (!stop || streams == 2) continue;
    ++streams;
    const auto answer = line["text"].get<std::string>();
    const auto prompt = line["prompt"].get<std::string>();
    CAPTURE(prompt, answer, *stop);
    CHECK(done_on_ranks(1, {"generate", "--weights", made.model.string(), "--max-tokens", "8",
                            "--prompt", prompt, "--stop", *stop}) ==
          prompt + answer.substr(0, answer.find(*stop)) + "\n");
  }
  CHECK(streams == 2);
}

TEST_CASE("commands on weights speak of worlds and backends only when asked") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto end = on_ranks(1, asking(made, {"--prompt", "line"}));
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, "tokens/s"));
  CHECK_FALSE(says(end.err, "a world of"));
  CHECK_FALSE(says(end.err, "backend"));
  const auto talking = on_ranks(1, asking(made, {"--prompt", "line", "-v"}));
  CHECK(says(talking.err, "a world of one rank"));
  CHECK(says(talking.err, "cpu backend"));
}

TEST_CASE("generate says what weights may be") {
  const TemporaryFolder folder;
  const auto end =
      on_ranks(1, {"generate", "--weights", (folder.path() / "none").string(), "--prompt", "x"});
  CHECK(end.exit_code == 6);
  CHECK(says(end.err, "a Hugging Face folder"));
}

TEST_CASE("answers end with the token that the folder declares, and runs and exports keep it") {
  const TemporaryFolder folder;
  const auto made = make_text_model(folder.path());
  const auto all = lines_of(done_on_ranks(1, asking(made, {"--prompt", prompts[0]})))[0];
  REQUIRE(all["tokens"].size() == 8);
  // A token of the answer that is no special token and has no usual name.
  const auto end = all["tokens"][3];
  const auto at =
      std::find(all["tokens"].begin(), all["tokens"].end(), end) - all["tokens"].begin();
  const auto path = made.model / "config.json";
  auto config = base::value_or_throw(base::read_json_file(path));
  config["eos_token_id"] = {end, 0};
  base::write_file_durably(path, base::json_text(config));
  std::filesystem::remove(made.model / "generation_config.json");
  const auto check = [&](const std::vector<std::string>& asked) {
    const auto line = lines_of(done_on_ranks(1, asked))[0];
    CHECK(line["ending"] == "stop");
    CHECK(line["tokens"].size() == static_cast<std::size_t>(at));
  };
  check(asking(made, {"--prompt", prompts[0]}));

  const auto run = (folder.path() / "run").string();
  done_on_ranks(1, {"checkpoint", "import", made.model.string(), "--to", run});
  std::filesystem::rename(made.model, folder.path() / "gone");
  check({"generate", "--weights", run, "--max-tokens", "8", "--json", "--prompt", prompts[0]});
  const auto exported = folder.path() / "exported";
  done_on_ranks(1, {"checkpoint", "export", run, "--to", exported.string()});
  const auto said = [&](const char* name) {
    return base::value_or_throw(base::read_json_file(exported / name));
  };
  CHECK(said("config.json")["eos_token_id"] == config["eos_token_id"]);
  CHECK(said("generation_config.json")["eos_token_id"] == config["eos_token_id"]);
  // The tokenizer named <|endoftext|>, which is among them.
  CHECK(said("tokenizer_config.json")["eos_token"] == "<|endoftext|>");
}
