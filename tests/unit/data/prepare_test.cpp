// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/prepare.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "data/tokens/ordered_pipeline.hpp"
#include "documents.hpp"
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <set>

using namespace trireme;
using namespace trireme::data;
using Ids = std::vector<std::int32_t>;

namespace {

Tokenizer tokenizer() {
  return Tokenizer::load(std::string(TRIREME_SOURCE_DIR) + "/tests/golden/tokenizer/llama3.json")
      .value();
}

/// The token that the template of this tokenizer puts before a text.
constexpr std::int32_t begin = 1024;

std::vector<std::string> documents_in(const std::filesystem::path& prefix) {
  const auto tokens = IndexedTokens::open(prefix).value();
  const auto reader = tokenizer();
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < tokens.document_count(); ++i) {
    const auto range = tokens.document(i);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(range.end - range.begin));
    tokens.read(range.begin, ids);
    CHECK(ids.back() == reader.end_of_text());
    CHECK(ids.front() == begin);
    ids.erase(ids.begin());
    ids.pop_back();
    texts.push_back(reader.decode(ids));
  }
  return texts;
}

}  // namespace

TEST_CASE("what is no text is refused before anything is written") {
  const Scratch scratch;
  scratch.write("many/a.txt", many_documents(1000));
  scratch.write("many/b.parquet", "PAR1");
  PrepareOptions options;
  options.out = scratch / "out";
  const auto prepared = prepare({{(scratch / "many").string()}}, tokenizer(), options);
  REQUIRE_FALSE(prepared.ok());
  CHECK_THAT(prepared.failure().text, Catch::Contains("b.parquet' is Parquet"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out.bin"));
}

TEST_CASE("prepared documents are the text, each with its end") {
  const Scratch scratch;
  const auto text = scratch.write("in.txt", "First one.\n\nSecond, \xFF ill-formed.\n\nThird.");
  PrepareOptions options;
  options.out = scratch / "new/folder/out";
  const auto report = prepare({{text.string()}, "blank-line"}, tokenizer(), options).value();
  CHECK(documents_in(options.out) ==
        std::vector<std::string>{"First one.", "Second, \uFFFD ill-formed.", "Third."});
  CHECK(report.notes.repaired_documents == 1);
  CHECK(report.train.documents == 3);
  CHECK(report.train.text_bytes == 37);
  CHECK_FALSE(report.validation.has_value());
  const auto facts = read_facts(options.out).value();
  REQUIRE(facts.has_value());
  CHECK(facts->tokens == IndexedTokens::open(options.out)->token_count());
  CHECK(facts->vocab_size == tokenizer().vocab_size());
  CHECK(IndexedTokens::open(options.out)->token_type() == TokenType::uint16);
  CHECK_FALSE(read_facts(scratch / "absent")->has_value());
  scratch.write("bad.json", "{\"documents\":1}");
  CHECK_THAT(read_facts(scratch / "bad").failure().text, Catch::Contains("lacks one of"));
}

TEST_CASE(
    "what is no UTF-8 becomes U+FFFD at any offset, as in the text that was repaired before") {
  const Scratch scratch;
  std::string text = many_documents(5'000'000);
  constexpr std::string_view ill_formed[] = {"\xff", "\xe2\x82", "\xed\xa0\x80", "\xf0\x9f\x98"};
  std::string broken;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += 997) {
    broken += text.substr(at, 997);
    broken += ill_formed[count++ % std::size(ill_formed)];
  }
  const auto repaired = base::repaired_utf8(broken);
  std::string lines;
  std::string escaped;
  for (const auto part : base::split(broken, '\n')) {
    if (part.empty()) continue;
    lines += "{\"text\":\"" + std::string(part) + "\"}\n";
    escaped += base::json_text({{"text", std::string(part)}}) + "\n";
  }
  const auto prepared = [&](const std::string& name, const std::string& bytes, int threads) {
    PrepareOptions options;
    options.out = scratch / (name + ".out");
    options.threads = threads;
    const auto input = scratch.write(name, bytes).string();
    const auto report = prepare({{input}}, tokenizer(), options).value();
    return std::pair(file_bytes(options.out.string() + ".bin"), report.notes.repaired_documents);
  };
  const auto whole = prepared("repaired.txt", repaired, 1);
  CHECK(whole.second == 0);
  for (const int threads : {1, 3}) {
    const auto read = prepared("broken.txt", broken, threads);
    CHECK((read.first == whole.first));
    CHECK(read.second == 1);
    const auto read_lines = prepared("broken.jsonl", lines, threads);
    const auto written = prepared("escaped.jsonl", escaped, threads);
    CHECK((read_lines.first == written.first));
    CHECK(read_lines.second > 1000);
    CHECK(written.second == 0);
  }
}

TEST_CASE("documents begin as prompts do, unless that is left out") {
  const Scratch scratch;
  const auto input = scratch.write("in.jsonl", "{\"text\":\"Hello\"}\n{\"text\":\"\"}\n").string();
  const auto ids_of = [&](const PrepareOptions& options) {
    REQUIRE(prepare({{input}}, tokenizer(), options).ok());
    const auto tokens = IndexedTokens::open(options.out).value();
    Ids ids(static_cast<std::size_t>(tokens.token_count()));
    tokens.read(0, ids);
    return ids;
  };
  auto expected = tokenizer().encode("Hello", Template::apply);
  REQUIRE(expected.front() == begin);
  expected.push_back(*tokenizer().end_of_text());
  PrepareOptions options;
  options.out = scratch / "with";
  CHECK(ids_of(options) == expected);
  CHECK(read_facts(options.out)->value().begin_of_text == Ids{begin});
  options.around = Template::omit;
  options.out = scratch / "without";
  CHECK(ids_of(options) == Ids(expected.begin() + 1, expected.end()));
  CHECK(read_facts(options.out)->value().begin_of_text.empty());
  // The template's own end and the end of text are one.
  options.end_of_text = "<|im_start|>";
  options.out = scratch / "other";
  CHECK(ids_of(options).back() == begin);

  using Paths = std::vector<std::filesystem::path>;
  CHECK_FALSE(difference_in_begin(Paths{scratch / "with", scratch / "absent"}, tokenizer()));
  const auto difference =
      difference_in_begin(Paths{scratch / "with.bin", scratch / "without.idx"}, tokenizer());
  REQUIRE(difference.has_value());
  CHECK_THAT(*difference, Catch::Contains("without.idx' begin with no token of their own, prompts "
                                          "with <|im_start|>"));
}

TEST_CASE("spellings of special tokens in a text are these tokens, or text when asked for") {
  const Scratch scratch;
  const auto input = scratch.write("in.txt", "a <|endoftext|> b [word] c").string();
  PrepareOptions options;
  options.around = Template::omit;
  const auto ids_of = [&](SpecialSpellings spellings, std::int64_t documents) {
    options.special_spellings = spellings;
    options.out = scratch / "out";
    const auto report = prepare({{input}}, tokenizer(), options).value();
    CHECK(report.documents_with_special_tokens == documents);
    const auto tokens = IndexedTokens::open(options.out).value();
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.token_count()));
    tokens.read(0, ids);
    ids.pop_back();
    CHECK(tokenizer().decode(ids) == "a <|endoftext|> b [word] c");
    return ids;
  };
  const auto end = *tokenizer().end_of_text();
  const auto as_tokens = ids_of(SpecialSpellings::tokens, 1);
  const auto as_text = ids_of(SpecialSpellings::text, 0);
  CHECK(std::count(as_tokens.begin(), as_tokens.end(), end) == 1);
  CHECK(std::count(as_text.begin(), as_text.end(), end) == 0);
  // A token that is not special stays one.
  const auto word = *tokenizer().token_to_id("[word]");
  CHECK(std::count(as_text.begin(), as_text.end(), word) == 1);
}

TEST_CASE("prepared files do not depend on the number of threads") {
  const Scratch scratch;
  const DocumentSources sources{{scratch.write("in.txt", many_documents(6'000'000)).string()},
                                "blank-line"};
  std::vector<std::string> files;
  for (const int threads : {1, 2, 5}) {
    PrepareOptions options;
    options.out = scratch / ("out" + std::to_string(threads));
    options.validation_fraction = 0.2;
    options.threads = threads;
    std::uint64_t last = 0;
    REQUIRE(prepare(sources, tokenizer(), options, [&](const ReadProgress& progress) {
              CHECK(progress.bytes_read >= last);
              last = progress.bytes_read;
            }).ok());
    for (const char* ending : {".bin", ".idx", ".json", ".validation.bin", ".validation.idx"}) {
      files.push_back(file_bytes(options.out.string() + ending));
      REQUIRE_FALSE(files.back().empty());
      CHECK((files.back() == files[(files.size() - 1) % 5]));
    }
  }
}

TEST_CASE("documents are held out by what they say, wherever they stand") {
  const Scratch scratch;
  const auto documents = many_documents(0);
  PrepareOptions options;
  options.validation_fraction = 0.25;
  options.out = scratch / "one";
  const auto path = scratch.write("one.txt", documents).string();
  const auto report = prepare({{path}, "blank-line"}, tokenizer(), options).value();
  REQUIRE(report.validation.has_value());
  CHECK(report.train.documents + report.validation->documents == 400);
  CHECK(report.validation->documents > 60);
  CHECK(report.validation->documents < 140);
  const auto held_out = documents_in(scratch / "one.validation");

  // The same documents among others, as JSON, in another order.
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "{\"text\":\"other " + std::to_string(i) + "\"}\n";
  auto texts = texts_of({{path}, "blank-line"});
  std::reverse(texts.begin(), texts.end());
  for (const auto& text : texts) lines += base::Json{{"text", text}}.dump() + "\n";
  options.out = scratch / "two";
  REQUIRE(prepare({{scratch.write("two.jsonl", lines).string()}}, tokenizer(), options).ok());
  const auto again = documents_in(scratch / "two.validation");
  const std::set<std::string> found(again.begin(), again.end());
  for (const auto& text : held_out) CHECK(found.count(text) == 1);
}

TEST_CASE("what cannot be prepared is refused and leaves no file") {
  using Catch::Contains;
  const Scratch scratch;
  const auto path = scratch.write("in.txt", "one document").string();
  const auto failure = [&](const PrepareOptions& chosen, const std::string& input) {
    auto options = chosen;
    options.out = scratch / "out";
    const auto report = prepare({{input}}, tokenizer(), options);
    CHECK_FALSE(std::filesystem::exists(scratch / "out.bin"));
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) <= 2);
    return report.ok() ? "no failure" : report.failure().text;
  };
  PrepareOptions options;
  options.validation_fraction = 1.0;
  CHECK_THAT(failure(options, path), Contains("--validation-fraction 1 is not"));
  options.validation_fraction = 0.5;
  CHECK_THAT(failure(options, path), Contains("of 1 document 0 were held out"));
  options.validation_fraction = 0.0;
  options.end_of_text = "<|endoftxt|>";
  CHECK_THAT(failure(options, path), Contains("did you mean '<|endoftext|>'?"));
  options.end_of_text.clear();
  CHECK_THAT(failure(options, scratch.write("empty.txt", "").string()), Contains("holds no text"));
}

TEST_CASE("a pipeline keeps order, and its first exception ends all threads") {
  for (const int threads : {1, 2, 7}) {
    int next = 0;
    std::vector<int> taken;
    OrderedPipeline<int, int> pipeline;
    pipeline.run(
        threads, [&] { return next < 1000 ? std::optional(next++) : std::nullopt; },
        [] { return [](int item) { return item * item; }; },
        [&](int result) { taken.push_back(result); });
    REQUIRE(taken.size() == 1000);
    for (int i = 0; i < 1000; ++i) CHECK(taken[static_cast<std::size_t>(i)] == i * i);

    const auto run_with = [&](int bad_work, int bad_result) {
      next = 0;
      OrderedPipeline<int, int> failing;
      failing.run(
          threads, [&] { return std::optional(next++); },
          [&] {
            return [&](int item) {
              if (item == bad_work) throw std::runtime_error("work");
              return item;
            };
          },
          [&](int result) {
            if (result == bad_result) throw std::runtime_error("result");
          });
    };
    CHECK_THROWS_WITH(run_with(50, -1), "work");
    CHECK_THROWS_WITH(run_with(-1, 50), "result");
  }
}
