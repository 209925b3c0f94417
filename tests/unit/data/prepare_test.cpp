// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/prepare.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/data/indexed_tokens.hpp"
#include "trireme/data/tokenizer_training.hpp"

#include "data/documents/document_reader.hpp"
#include "data/tokens/ordered_pipeline.hpp"
#include "scratch.hpp"

#include <catch2/catch.hpp>
#include <zlib.h>
#include <zstd.h>

#include <numeric>
#include <set>

using namespace trireme;
using namespace trireme::data;

namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1024, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out = out.substr(0, stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const auto size = ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3);
  REQUIRE(ZSTD_isError(size) == 0);
  out.resize(size);
  return out;
}

std::vector<std::string> texts_of(const DocumentSources& sources) {
  auto reader = DocumentReader::open(sources).value();
  std::vector<std::string> texts;
  std::string storage;
  while (const auto batch = reader.next()) {
    for (const auto& document : batch->documents) {
      texts.emplace_back(document_text(*batch, document, sources.text_field, storage));
    }
  }
  CHECK(reader.progress().bytes_read == reader.progress().bytes_total);
  return texts;
}

std::string failure_of(const DocumentSources& sources) {
  const auto reader = DocumentReader::open(sources);
  if (!reader) return reader.failure().text;
  try {
    texts_of(sources);
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::checkpoint);
    return error.what();
  }
  return "no failure";
}

Tokenizer tokenizer() {
  return Tokenizer::load(std::string(TRIREME_SOURCE_DIR) + "/tests/golden/tokenizer/llama3.json")
      .value();
}

/// Documents of many sizes; the last is large enough to be cut for several threads.
std::string many_documents(std::size_t large_bytes) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += "Document " + std::to_string(i) + " tells\n";
    for (int line = 0; line < i % 17; ++line) text += "  of line " + std::to_string(line) + ".\n";
    text += "\n";
  }
  for (long i = 0; text.size() < large_bytes; ++i) text += "Line " + std::to_string(i * i) + ".\n";
  return text;
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

TEST_CASE("documents are files, lines of JSON or what a separator leaves") {
  const Scratch scratch;
  scratch.write("in/b.txt", "one\n\n\ntwo\n \t\nthree");
  scratch.write("in/a/x.jsonl", "{\"text\":\"four\\n\"}\n\n{\"text\":\"five\",\"n\":1}\n");
  scratch.write("in/c.jsonl.gz", gzip("{\"text\":\"six\"}\n{\"text\":\"seven\"}"));
  scratch.write("in/d.txt.gz", gzip("eight\n\nnine") + gzip("\n\nten"));
  scratch.write("in/.hidden", "never");
  scratch.write("in/.git/objects", "never");
  scratch.write("in/empty", "");
  using Texts = std::vector<std::string>;
  const auto folder = (scratch / "in").string();
  CHECK(texts_of({{folder}}) == Texts{"four\n", "five", "one\n\n\ntwo\n \t\nthree", "six", "seven",
                                      "eight\n\nnine\n\nten"});
  CHECK(texts_of({{folder}, "blank-line"}) ==
        Texts{"four\n", "five", "one", "two", "three", "six", "seven", "eight", "nine", "ten"});
  CHECK(texts_of({{(scratch / "in/b.txt").string()}, "^t"}) ==
        Texts{"one\n\n\n", "wo\n \t\n", "hree"});
  scratch.write("other.ndjson", "{\"body\":\"x\"}\n");
  CHECK(texts_of({{(scratch / "other.ndjson").string()}, "", "body"}) == Texts{"x"});
}

TEST_CASE("zstd is read as gzip is, frame after frame") {
  const Scratch scratch;
  const std::string skipped(
      "\x50\x2A\x4D\x18\x02\x00\x00\x00"
      "ab",
      10);
  scratch.write("in/a.jsonl.zst", zstd("{\"text\":\"one\"}\n{\"text\":\"two\"}"));
  scratch.write("in/b.txt.zst", skipped + zstd("three\n\nfour") + zstd("\n\nfive"));
  scratch.write("in/c.zst", zstd(""));
  CHECK(texts_of({{(scratch / "in").string()}, "blank-line"}) ==
        std::vector<std::string>{"one", "two", "three", "four", "five"});
}

TEST_CASE("what is no text is refused before anything is written") {
  const Scratch scratch;
  const std::string zeros(4, '\0');
  const std::pair<std::string, const char*> inputs[] = {
      {"PAR1" + zeros, "is Parquet (inputs are text"},
      {"ARROW1" + zeros, "is Arrow"},
      {"\xFF\xFF\xFF\xFF" + zeros, "is an Arrow stream"},
      {"BZh91AY&SY\x12\x34", "is bzip2"},
      {"\xFD"
       "7zXZ" +
           zeros,
       "is xz"},
      {"\x04\x22\x4D\x18 more", "is lz4"},
      {"PK\x03\x04 more", "is a zip archive"},
      {"%PDF-1.5\n", "is PDF"},
      {"\xFF\xFEt" + zeros, "is UTF-16"},
      {"text, then" + zeros, "has a NUL at byte 10"},
      {gzip("PAR1" + zeros), "is Parquet"},
      {zstd("some" + zeros), "has a NUL at byte 4"},
  };
  for (const auto& [bytes, problem] : inputs) {
    for (const std::string name : {"in.txt", "in.jsonl"}) {
      CAPTURE(problem, name);
      CHECK_THAT(failure_of({{scratch.write(name, bytes).string()}}), Catch::Contains(problem));
    }
  }
  CHECK(failure_of({{scratch.write("in.txt", "BZh is how some words begin").string()}}) ==
        "no failure");
  scratch.write("many/a.txt", many_documents(1000));
  scratch.write("many/b.parquet", "PAR1");
  PrepareOptions options;
  options.out = scratch / "out";
  const auto prepared = prepare({{(scratch / "many").string()}}, tokenizer(), options);
  REQUIRE_FALSE(prepared.ok());
  CHECK_THAT(prepared.failure().text, Catch::Contains("b.parquet' is Parquet"));
  CHECK_FALSE(std::filesystem::exists(scratch / "out.bin"));
}

TEST_CASE("tables are read as they stand, and that is said") {
  const Scratch scratch;
  const auto path = scratch.write("table.csv.gz", gzip("name,age\na,1\n")).string();
  const auto before = base::log::settings();  // NOLINT(performance-unnecessary-copy-initialization)
  auto to_file = before;
  to_file.file = (scratch / "log").string();
  base::log::configure(to_file);
  CHECK(texts_of({{path}}) == std::vector<std::string>{"name,age\na,1\n"});
  base::log::configure(before);
  CHECK_THAT(file_bytes(scratch / "log"), Catch::Contains("read as plain text"));
}

TEST_CASE("many lines of compressed JSON arrive whole") {
  const Scratch scratch;
  const std::string filler(96, 'x');
  const auto text = [&](std::size_t i) { return filler.substr(i % 97) + std::to_string(i); };
  std::string lines;
  for (std::size_t i = 0; i < 100'000; ++i) lines += "{\"text\":\"" + text(i) + "\"}\n";
  const auto path = scratch.write("big.jsonl.gz", gzip(lines)).string();
  const auto texts = texts_of({{path}});
  REQUIRE(texts.size() == 100'000);
  for (std::size_t i = 0; i < texts.size(); ++i) REQUIRE(texts[i] == text(i));
}

TEST_CASE("inputs that cannot be read say where") {
  using Catch::Contains;
  const Scratch scratch;
  const auto failure = [&](const std::string& name, const std::string& bytes) {
    return failure_of({{scratch.write(name, bytes).string()}});
  };
  CHECK_THAT(failure_of({{(scratch / "absent").string()}}), Contains("absent': No such file"));
  CHECK_THAT(failure_of({{scratch.path().string()}}), Contains("there is no file to read"));
  CHECK_THAT(failure("a.jsonl", "{\"text\":\"x\"}\n{\"text\":\n"),
             Contains("a.jsonl' line 2: not"));
  CHECK_THAT(failure("b.jsonl", "{\"body\":\"x\",\"n\":1}"), Contains("members: body, n"));
  CHECK_THAT(failure("c.jsonl", "[1]"), Contains("line 1: array, expected an object"));
  CHECK_THAT(failure("d.jsonl", "{\"text\":7}"), Contains("no text in 'text'"));
  const auto whole = gzip(many_documents(100'000));
  CHECK_THAT(failure("e.gz", whole.substr(0, whole.size() / 2)), Contains("ends in the middle"));
  auto flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(~flipped[whole.size() / 2]);
  CHECK_THAT(failure("f.gz", flipped), Contains("f.gz': gzip is damaged"));
  CHECK_THAT(failure("g.gz", whole + "more"), Contains("no gzip member"));
  CHECK(failure("h.gz", whole + std::string(10, '\0')) == "no failure");
  CHECK_THAT(failure("i.gz", gzip(std::string(std::size_t{100} << 20, 'x'))),
             Contains("expands more than 400 times"));
  const auto frame = zstd(many_documents(100'000));
  CHECK_THAT(failure("j.zst", frame.substr(0, frame.size() / 2)), Contains("ends in the middle"));
  auto broken = frame;
  broken[broken.size() / 2] = static_cast<char>(~broken[broken.size() / 2]);
  CHECK_THAT(failure("k.zst", broken + "x"), Contains("k.zst': zstd is damaged"));
  CHECK_THAT(failure("l.zst", frame + "more"), Contains("zstd is damaged"));
  CHECK_THAT(failure("m.zst", zstd(std::string(std::size_t{100} << 20, 'x'))),
             Contains("expands more than 400 times"));
  CHECK_THAT(failure_of({{scratch.path().string()}, "a*"}), Contains("matches the empty text"));
  CHECK_THAT(failure_of({{scratch.path().string()}, "("}), Contains("is no regular expression"));
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
  CHECK_THAT(failure(options, path), Contains("of 1 documents"));
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
