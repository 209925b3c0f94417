// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/tokenizer.hpp"

#include "trireme/base/json.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <functional>
#include <thread>

using namespace trireme;
using namespace trireme::data;
using base::Json;
using Ids = std::vector<std::int32_t>;

namespace {

const std::filesystem::path golden =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "tests" / "golden" / "tokenizer";

Json golden_json(const std::string& kind) {
  return base::read_json_file(golden / (kind + ".json")).value();
}

Tokenizer parse(const Json& json) {
  return Tokenizer::parse(json.dump(), "here").value();
}

/// Why a golden tokenizer is refused after a change.
std::string refusal(const std::string& kind, const std::function<void(Json&)>& change) {
  auto json = golden_json(kind);
  change(json);
  const auto result = Tokenizer::parse(json.dump(), "here");
  if (result.ok()) return "accepted";
  CHECK(result.failure().code == base::ExitCode::checkpoint);
  CHECK(result.failure().text.find("'here': ") == 0);
  return result.failure().text;
}

void check_golden(const Tokenizer& tokenizer, const std::string& kind) {
  const auto cases = base::read_json_file(golden / (kind + ".cases.json")).value();
  REQUIRE(cases.size() >= 5);
  for (const auto& one : cases) {
    CAPTURE(kind, one["name"]);
    const auto expected = one["ids"].get<Ids>();
    REQUIRE(expected.size() > 50);
    CHECK(tokenizer.encode(one["text"].get<std::string>(), Template::apply) == expected);
    CHECK(tokenizer.decode(expected) == one["decoded"].get<std::string>());
    CHECK(tokenizer.decode(expected, SpecialTokens::skip) ==
          one["decoded_without_special"].get<std::string>());
  }
}

constexpr std::array<const char*, 4> kinds{"gpt2", "gpt2-prefix", "llama3", "qwen"};

}  // namespace

TEST_CASE("ids and text equal those of Hugging Face tokenizers") {
  for (const std::string kind : kinds) {
    check_golden(Tokenizer::load(golden / (kind + ".json")).value(), kind);
  }
}

TEST_CASE("a saved tokenizer gives the same ids, and saving it again the same file") {
  const Scratch scratch;
  for (const std::string kind : kinds) {
    const auto path = scratch / (kind + ".json");
    Tokenizer::load(golden / (kind + ".json"))->save(path);
    const auto again = Tokenizer::load(path).value();
    check_golden(again, kind);
    CHECK(again.to_json() == file_bytes(path));
  }
}

TEST_CASE("one tokenizer serves several threads") {
  const auto tokenizer = Tokenizer::load(golden / "llama3.json").value();
  std::vector<std::thread> threads;
  std::vector<Ids> ids(4);
  for (auto& one : ids) {
    threads.emplace_back([&] { one = tokenizer.encode("the same text for all, 1234 times"); });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& one : ids) CHECK(one == ids.front());
}

TEST_CASE("an encoder gives the same ids whatever it has met before") {
  const auto tokenizer = Tokenizer::load(golden / "qwen.json").value();
  const auto cases = base::read_json_file(golden / "qwen.cases.json").value();
  Tokenizer::Encoder encoder(tokenizer);
  for (int round = 0; round < 2; ++round) {
    for (const auto& one : cases) {
      Ids ids;
      encoder.encode(one["text"].get<std::string>(), ids);
      CHECK(ids == one["ids"].get<Ids>());
    }
  }
  CHECK(encoder.repaired_texts() == 0);
}

TEST_CASE("ill-formed UTF-8 is read as replacement characters") {
  const auto tokenizer = Tokenizer::load(golden / "llama3.json").value();
  CHECK(tokenizer.encode("a\xFFz \xE2\x82") == tokenizer.encode("a\uFFFDz \uFFFD"));
  Tokenizer::Encoder encoder(tokenizer);
  Ids ids;
  encoder.encode("\x80", ids);
  CHECK(encoder.repaired_texts() == 1);
}

TEST_CASE("bytes of a token may end in the middle of a character, text may not") {
  const auto tokenizer = Tokenizer::load(golden / "gpt2.json").value();
  auto ids = tokenizer.encode("\U0001F9EA");
  REQUIRE(ids.size() > 1);
  CHECK(tokenizer.decode(ids) == "\U0001F9EA");
  ids.pop_back();
  CHECK(tokenizer.decode(ids) == "\uFFFD");
  CHECK(std::string("\U0001F9EA").find(tokenizer.decode_bytes(ids)) == 0);
  CHECK(tokenizer.decode(Ids{-1, 1 << 30}).empty());
}

TEST_CASE("the template puts begin-of-text around a text only when asked") {
  const auto tokenizer = Tokenizer::load(golden / "llama3.json").value();
  const auto begin = tokenizer.token_to_id("<|im_start|>").value();
  auto ids = tokenizer.encode("x");
  ids.insert(ids.begin(), begin);
  CHECK(tokenizer.encode("x", Template::apply) == ids);
  CHECK(tokenizer.encode("", Template::apply) == Ids{begin});
  CHECK(tokenizer.encode("").empty());
}

TEST_CASE("words of a megabyte are merged in reasonable time") {
  const auto tokenizer = Tokenizer::load(golden / "llama3.json").value();
  for (const std::string unit : {"a", "ab", "\u4E2D", " ", "\n", "-", "e\u0301\u0327"}) {
    std::string word;
    while (word.size() < 1'000'000) word += unit;
    CHECK(tokenizer.decode(tokenizer.encode(word)) == word);
  }
}

TEST_CASE("marks in the wrong order are sorted in reasonable time") {
  const auto tokenizer = Tokenizer::load(golden / "qwen.json").value();
  std::string text = "q";
  std::string sorted = "q";
  for (int i = 0; i < 100'000; ++i) text += "\u0301\u0316";
  for (int i = 0; i < 100'000; ++i) sorted += "\u0316";
  for (int i = 0; i < 100'000; ++i) sorted += "\u0301";
  CHECK(tokenizer.encode(text) == tokenizer.encode(sorted));
}

TEST_CASE("parts of a text encode to the ids of the whole") {
  const std::string line = "Lines end here.\n\nOthers\r\ngo on: x = 1;\n  indented\nagain\n\tTab\n";
  std::string text;
  for (int i = 0; i < 300; ++i) text += line.substr(0, 10 + static_cast<std::size_t>(i * 7) % 50);
  for (const std::string kind : {"gpt2", "llama3", "qwen"}) {
    auto json = golden_json(kind);
    const auto tokenizer = parse(json);
    const auto parts = tokenizer.cut(text, 100);
    CHECK(parts.size() > 20);
    Ids ids;
    std::string joined;
    for (const auto part : parts) {
      const auto own = tokenizer.encode(part);
      ids.insert(ids.end(), own.begin(), own.end());
      joined += part;
    }
    CHECK(joined == text);
    CHECK(ids == tokenizer.encode(text));
  }
}

TEST_CASE("text is not cut where the cut could change ids") {
  const std::string text = "line\nline\nline\nline\n";
  CHECK(Tokenizer::load(golden / "gpt2-prefix.json")->cut(text, 5).size() == 1);
  const auto with_token = [&](const std::string& content, bool lstrip) {
    auto json = golden_json("gpt2");
    auto token = json["added_tokens"].back();
    token["id"] = token["id"].get<int>() + 1;
    token["content"] = content;
    token["lstrip"] = lstrip;
    json["added_tokens"].push_back(token);
    return parse(json).cut(text, 5).size();
  };
  CHECK(with_token("harmless", false) == 2);
  CHECK(with_token("e\nl", false) == 1);
  CHECK(with_token("line", true) == 1);
  auto other = golden_json("llama3");
  other["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "\\s*\\p{L}+|[^\\p{L}]";
  CHECK(parse(other).cut(text, 5).size() == 1);
}

TEST_CASE("the end of text goes by its usual names") {
  const auto tokenizer = Tokenizer::load(golden / "qwen.json").value();
  CHECK(tokenizer.end_of_text() == tokenizer.token_to_id("<|endoftext|>"));
  CHECK(tokenizer.text_ends().ids == Ids{*tokenizer.end_of_text()});
  CHECK(tokenizer.id_to_token(*tokenizer.end_of_text()) == "<|endoftext|>");
  CHECK_FALSE(tokenizer.token_to_id("<|absent|>").has_value());
  CHECK_FALSE(tokenizer.id_to_token(tokenizer.vocab_size()).has_value());
}

TEST_CASE("merges may be pairs or texts, and files of old name no model type") {
  auto json = golden_json("gpt2");
  auto& model = json["model"];
  REQUIRE(model["merges"][0].is_array());
  for (auto& merge : model["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  check_golden(parse(json), "gpt2");
  model.erase("type");
  model["continuing_subword_prefix"] = "";
  check_golden(parse(json), "gpt2");
}

TEST_CASE("parts that are not known are refused by name") {
  using Catch::Contains;
  const auto set = [](const char* where, Json value) {
    return [=](Json& json) { json[Json::json_pointer(where)] = value; };
  };
  const Json lowercase{{"type", "Lowercase"}};
  CHECK_THAT(refusal("gpt2", set("/normalizer", lowercase)), Contains("normalizer 'Lowercase'"));
  CHECK_THAT(refusal("gpt2", set("/pre_tokenizer", {{"type", "Whitespace"}})),
             Contains("pre-tokenizer 'Whitespace'"));
  CHECK_THAT(refusal("gpt2", set("/pre_tokenizer", nullptr)), Contains("pre-tokenizer 'null'"));
  CHECK_THAT(refusal("llama3", set("/pre_tokenizer/pretokenizers/0/behavior", "Removed")),
             Contains("Split with behavior Removed"));
  CHECK_THAT(refusal("llama3", set("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+")),
             Contains("'\\w'"));
  CHECK_THAT(refusal("llama3", set("/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\s*")),
             Contains("matches the empty text"));
  CHECK_THAT(refusal("llama3", set("/pre_tokenizer/pretokenizers/1", {{"type", "Digits"}})),
             Contains("'Digits'"));
  CHECK_THAT(refusal("gpt2", set("/decoder", {{"type", "WordPiece"}})), Contains("'WordPiece'"));
  CHECK_THAT(refusal("gpt2", set("/decoder", nullptr)), Contains("decoder 'null'"));
  CHECK_THAT(refusal("gpt2", set("/model/type", "Unigram")), Contains("model 'Unigram'"));
  CHECK_THAT(refusal("gpt2", set("/model/dropout", 0.1)), Contains("model.dropout is 0.1"));
  CHECK_THAT(refusal("gpt2", set("/model/byte_fallback", true)), Contains("byte_fallback"));
  CHECK_THAT(refusal("gpt2", set("/model/end_of_word_suffix", "</w>")), Contains("</w>"));
  CHECK_THAT(refusal("gpt2", set("/post_processor", {{"type", "BertProcessing"}})),
             Contains("post-processor 'BertProcessing'"));
  CHECK_THAT(refusal("gpt2", set("/version", "2.0")), Contains("version is \"2.0\""));
}

TEST_CASE("damaged vocabularies are refused with the token that is wrong") {
  using Catch::Contains;
  const auto vocab = [](const std::string& token, Json id) {
    return [=](Json& json) { json["model"]["vocab"][token] = id; };
  };
  CHECK_THAT(refusal("gpt2", vocab("new", 5)), Contains("id 5 belongs to"));
  CHECK_THAT(refusal("gpt2", vocab("new", -1)), Contains("'new' has id -1"));
  CHECK_THAT(refusal("gpt2", vocab("new", 4'000'000'000U)), Contains("'new' has id 4000000000"));
  CHECK_THAT(refusal("gpt2", [](Json& json) { json["model"]["vocab"] = Json::object(); }),
             Contains("model.vocab is absent or empty"));
  CHECK_THAT(refusal("gpt2", [](Json& json) { json["model"]["merges"].push_back("a"); }),
             Contains("is no pair of tokens"));
  CHECK_THAT(refusal("gpt2", [](Json& json) { json["model"]["merges"].push_back("zq qz"); }),
             Contains("needs token 'zq'"));
  CHECK_THAT(refusal("gpt2", [](Json& json) { json["added_tokens"].back()["id"] = 7; }),
             Contains("has id 7, expected"));
  CHECK_THAT(refusal("gpt2", [](Json& json) { json["added_tokens"][0]["special"] = "yes"; }),
             Contains("'special' is string"));
  const auto without_byte = [](Json& json) {
    json["model"]["merges"] = Json::array();
    json["model"]["vocab"]["unused"] = json["model"]["vocab"]["!"];
    json["model"]["vocab"].erase("!");
    json["model"]["unk_token"] = "<|endoftext|>";
  };
  CHECK_THAT(refusal("gpt2", without_byte), Contains("no token for byte 33"));
}

TEST_CASE("no flipped bit in a tokenizer.json makes the reader fall over") {
  const auto text = golden_json("llama3").dump();
  for (std::size_t i = 0; i < 400; ++i) {
    auto damaged = text;
    // The frame is at both ends, the vocabulary between them.
    const auto at = i < 200 ? i * 10 : text.size() * (i - 200) / 200;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (i % 8)));
    const auto tokenizer = Tokenizer::parse(damaged, "here");
    if (tokenizer) tokenizer->decode(tokenizer->encode("Some text, 123."));
  }
  SUCCEED("all flips were read or refused");
}
