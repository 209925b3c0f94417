// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/prepare.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/data/tokenizer_training.hpp"

#include "data/tokens/ordered_pipeline.hpp"
#include "documents.hpp"
#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <numeric>
#include <set>

using namespace trireme;
using namespace trireme::data;

namespace {

Tokenizer tokenizer() {
  return Tokenizer::load(std::string(TRIREME_SOURCE_DIR) + "/tests/golden/tokenizer/llama3.json")
      .value();
}

std::vector<std::string> documents_in(const std::filesystem::path& prefix) {
  const auto tokens = IndexedTokens::open(prefix).value();
  const auto reader = tokenizer();
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < tokens.document_count(); ++i) {
    const auto range = tokens.document(i);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(range.end - range.begin));
    tokens.read(range.begin, ids);
    CHECK(ids.back() == reader.end_of_text());
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
  CHECK(report.repaired_documents == 1);
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

TEST_CASE("trained tokenizers do not depend on threads and skip the text of special tokens") {
  const Scratch scratch;
  auto text = many_documents(5'000'000);
  for (int i = 0; i < 1000; ++i) text += "<|endoftext|>";
  const DocumentSources sources{{scratch.write("in.txt", text).string()}};
  TrainingOptions options;
  options.vocab_size = 400;
  options.special_tokens = {"<|endoftext|>", "<|pad|>"};
  std::vector<std::string> results;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    const auto trained = train_tokenizer(sources, options).value();
    CHECK(trained.tokenizer.vocab_size() == 400);
    CHECK(trained.tokenizer.token_to_id("<|pad|>") == 1);
    CHECK_FALSE(trained.tokenizer.token_to_id("endoftext").has_value());
    CHECK(trained.report.text_bytes == text.size());
    CHECK(trained.report.documents == 1);
    results.push_back(trained.tokenizer.to_json());
  }
  CHECK(results[0] == results[1]);
}

TEST_CASE("impossible vocabularies and special tokens are refused") {
  using Catch::Contains;
  const Scratch scratch;
  const DocumentSources sources{{scratch.write("in.txt", "text").string()}};
  TrainingOptions options;
  options.vocab_size = 256;
  CHECK_THAT(train_tokenizer(sources, options).failure().text, Contains("choose 257 to"));
  options.vocab_size = 300;
  options.special_tokens = {"<s>", "<s>"};
  CHECK_THAT(train_tokenizer(sources, options).failure().text, Contains("'<s>' cannot be one"));
  options.special_tokens = {"a"};
  CHECK_THAT(train_tokenizer(sources, options).failure().text, Contains("'a' cannot be one"));
  options.special_tokens = {};
  CHECK(train_tokenizer(sources, options)->tokenizer.vocab_size() == 256);
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
