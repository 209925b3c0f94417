// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/tokenizer_training.hpp"

#include "documents.hpp"
#include "scratch.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::data;

TEST_CASE("a tokenizer is not learned from nothing") {
  const Scratch scratch;
  TrainingOptions options;
  options.vocab_size = 300;
  for (const auto* bytes : {"", "\xEF\xBB\xBF"}) {
    const auto trained = train_tokenizer({{scratch.write("in.txt", bytes).string()}}, options);
    REQUIRE_FALSE(trained.ok());
    CHECK(trained.failure().code == base::ExitCode::checkpoint);
    CHECK_THAT(trained.failure().text, Catch::Contains("holds no text"));
  }
  const auto path = scratch.write("in.jsonl", "{\"text\":\"\xff a\"}\nnone\n").string();
  DocumentSources sources{{path}};
  sources.bad_lines = BadLines::skip;
  const auto notes = train_tokenizer(sources, options).value().report.notes;
  CHECK(notes.repaired_documents == 1);
  CHECK(notes.skipped_lines == 1);
  CHECK_THAT(notes.first_skipped, Catch::Contains("in.jsonl' line 2: not valid JSON"));
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
