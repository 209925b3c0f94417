// SPDX-License-Identifier: Apache-2.0
// Which token ends a text: what the files beside a tokenizer declare, else usual names.
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/data/prepare.hpp"
#include "trireme/data/tokenizer.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::data;
using base::Json;
using Ids = std::vector<std::int32_t>;

namespace {

/// A byte-level tokenizer with the special token <END>, id 257, and "</s>", id 256, which is a
/// piece of ordinary text.
Json plain_tokenizer() {
  const auto golden =
      std::filesystem::path(TRIREME_SOURCE_DIR) / "tests" / "golden" / "tokenizer" / "gpt2.json";
  auto json = base::read_json_file(golden).value();
  Json vocabulary = Json::object();
  for (const auto& [token, id] : json["model"]["vocab"].items()) {
    // The golden file's bytes, behind its one special token.
    if (id >= 1 && id <= 256) vocabulary[token] = id.get<int>() - 1;
  }
  REQUIRE(vocabulary.size() == 256);
  vocabulary["</s>"] = 256;
  json["model"]["vocab"] = vocabulary;
  json["model"]["merges"] = Json::array();
  Json token = json["added_tokens"][0];
  token["id"] = 257;
  token["content"] = "<END>";
  token["special"] = true;
  json["added_tokens"] = Json::array({token});
  return json;
}

/// A folder with a tokenizer and other files.
struct Folder : Scratch {
  Folder() { write("tokenizer.json", plain_tokenizer()); }
  void write(const std::string& name, const Json& json) {
    write_bytes(path() / name, base::json_text(json));
  }
  base::Result<Tokenizer> load() const { return Tokenizer::load(path() / "tokenizer.json"); }
  std::string refusal() const {
    const auto loaded = load();
    if (loaded.ok()) return "accepted";
    CHECK(loaded.failure().code == base::ExitCode::checkpoint);
    return loaded.failure().text;
  }
};

}  // namespace

TEST_CASE("an ordinary piece of text is never guessed to be the end of text") {
  const Folder folder;
  const auto tokenizer = folder.load().value();
  CHECK(tokenizer.token_to_id("</s>") == 256);
  CHECK_FALSE(tokenizer.end_of_text().has_value());
  CHECK(tokenizer.text_ends().ids.empty());
  write_bytes(folder / "in.txt", "some text");
  PrepareOptions options;
  options.out = folder / "out";
  const auto prepared = prepare({{(folder / "in.txt").string()}}, tokenizer, options);
  REQUIRE_FALSE(prepared.ok());
  CHECK_THAT(prepared.failure().text, Catch::Contains("--end-of-text"));
  options.end_of_text = "</s>";
  CHECK(prepare({{(folder / "in.txt").string()}}, tokenizer, options)->train.end_of_text == 256);
}

TEST_CASE("the first file that declares an end of text decides") {
  Folder folder;
  const auto ends = [&] { return folder.load()->text_ends(); };
  folder.write("special_tokens_map.json", {{"eos_token", {{"content", "b"}, {"lstrip", false}}}});
  CHECK(ends().ids == Ids{*folder.load()->token_to_id("b")});
  folder.write("tokenizer_config.json", {{"eos_token", "a"}});
  CHECK(ends().ids == Ids{*folder.load()->token_to_id("b")});
  folder.write("tokenizer_config.json",
               {{"eos_token", "a"}, {"added_tokens_decoder", Json::object()}});
  CHECK(ends().ids == Ids{*folder.load()->token_to_id("a")});
  folder.write("config.json", {{"eos_token_id", nullptr}});
  CHECK(ends().ids == Ids{*folder.load()->token_to_id("a")});
  folder.write("config.json", {{"eos_token_id", 257}});
  CHECK(ends().ids == Ids{257});
  CHECK(ends().source == (folder / "config.json").string() + ": eos_token_id");
  REQUIRE(ends().overruled.size() == 1);
  CHECK_THAT(ends().overruled[0], Catch::Contains("tokenizer_config.json: eos_token = \"a\""));
  folder.write("generation_config.json", {{"eos_token_id", Json::array({5, 257})}});
  CHECK(ends().ids == Ids{5, 257});
  CHECK(ends().document_end == 5);
  CHECK(ends().overruled.size() == 1);
  folder.write("generation_config.json", {{"temperature", 0.6}});
  CHECK(ends().ids == Ids{257});
}

TEST_CASE("documents end with the token that the folder declares") {
  Folder folder;
  folder.write("config.json", {{"eos_token_id", 257}});
  write_bytes(folder / "in.jsonl", "{\"text\": \"a</s>\"}\n{\"text\": \"b\"}\n");
  PrepareOptions options;
  options.out = folder / "out";
  const auto prepared =
      prepare({{(folder / "in.jsonl").string()}}, folder.load().value(), options).value();
  CHECK(prepared.train.end_of_text == 257);
  const auto tokens = IndexedTokens::open(folder / "out").value();
  REQUIRE(tokens.document_count() == 2);
  for (std::int64_t document = 0; document < 2; ++document) {
    const auto range = tokens.document(document);
    Ids ids(static_cast<std::size_t>(range.end - range.begin));
    tokens.read(range.begin, ids);
    CHECK(ids.back() == 257);
    CHECK(std::count(ids.begin(), ids.end(), 257) == 1);
  }
}

TEST_CASE("declarations that are no tokens are refused with file, key and value") {
  const std::pair<const char*, Json> wrong[] = {
      {"generation_config.json", {{"eos_token_id", 50257}}},
      {"generation_config.json", {{"eos_token_id", -1}}},
      {"config.json", {{"eos_token_id", Json::array({257, "a"})}}},
      {"config.json", {{"eos_token_id", 1.5}}},
      {"config.json", {{"eos_token_id", true}}},
      {"config.json", Json::array()},
      {"tokenizer_config.json", {{"eos_token", "<ABSENT>"}}},
      {"tokenizer_config.json", {{"eos_token", 7}}},
      {"special_tokens_map.json", {{"eos_token", {{"content", "<ABSENT>"}}}}},
  };
  for (const auto& [name, json] : wrong) {
    Folder folder;
    folder.write(name, json);
    const auto text = folder.refusal();
    CAPTURE(text);
    CHECK_THAT(text, Catch::Contains((folder / name).string()));
    // Who names another token, or needs none, reads the tokenizer all the same.
    const auto loaded = Tokenizer::load(folder / "tokenizer.json", DeclaredEnds::ignore);
    REQUIRE(loaded.ok());
    CHECK(loaded->text_ends().source.empty());
    if (json.is_object()) CHECK_THAT(text, Catch::Contains(json.begin().key() + " = "));
  }
}
