// SPDX-License-Identifier: Apache-2.0
#include "data/documents/document_reader.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "documents.hpp"
#include "scratch.hpp"

#include <catch2/catch.hpp>
#include <zlib.h>
#include <zstd.h>

using namespace trireme;
using namespace trireme::data;
using base::format;

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

TEST_CASE("what is no text is refused by name") {
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
      {gzip("PAR1" + zeros), "is Parquet"},
  };
  for (const auto& [bytes, problem] : inputs) {
    for (const std::string name : {"in.txt", "in.jsonl"}) {
      CAPTURE(problem, name);
      CHECK_THAT(failure_of({{scratch.write(name, bytes).string()}}), Catch::Contains(problem));
    }
  }
  CHECK(failure_of({{scratch.write("in.txt", "BZh is how some words begin").string()}}) ==
        "no failure");
}

TEST_CASE("a NUL is no text at any byte of a plain text") {
  const Scratch scratch;
  for (const std::size_t at : {0U, 4U, 65'535U, 65'536U, 3'000'000U}) {
    CAPTURE(at);
    const std::string mark = at == 0 ? "" : "\xEF\xBB\xBF";
    const auto text =
        mark + many_documents(at + 1).substr(0, at - mark.size()) + std::string(2, '\0') + "end";
    for (const auto& bytes : {text, gzip(text), zstd(text)}) {
      const auto path = scratch.write("in.txt", bytes).string();
      for (const auto* separator : {"", "blank-line", "\\x00+"}) {
        CAPTURE(separator);
        DocumentSources sources{{path}, separator};
        sources.bad_lines = BadLines::skip;
        CHECK_THAT(failure_of(sources), Catch::Contains(format("has a NUL at byte {} (", at)));
      }
    }
  }
}

TEST_CASE("a line of JSON with a NUL is a bad line at any byte") {
  const Scratch scratch;
  const std::string zero(1, '\0');
  for (const int lines_before : {0, 1, 5000}) {
    CAPTURE(lines_before);
    std::string text;
    for (int line = 0; line < lines_before; ++line) text += "{\"text\":\"good line\"}\n";
    text.append("{\"text\":\"b").append(zero).append("c\"}\n").append(zero);
    text.append("\n{\"text\":\"last\"}\n");
    for (const auto& bytes : {text, gzip(text)}) {
      DocumentSources sources{{scratch.write("in.jsonl", bytes).string()}};
      CHECK_THAT(failure_of(sources),
                 Catch::Contains(format("line {}: a zero byte at offset 10", lines_before + 1)));
      sources.bad_lines = BadLines::skip;
      const auto texts = texts_of(sources);
      REQUIRE(texts.size() == static_cast<std::size_t>(lines_before) + 3);
      CHECK(texts[texts.size() - 3].empty());
      CHECK(texts[texts.size() - 2].empty());
      CHECK(texts.back() == "last");
    }
  }
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

TEST_CASE("JSON lines beyond the standard are read, and what changed is known") {
  const Scratch scratch;
  struct Line {
    std::string json;
    std::string text;
    bool is_repaired;
  };
  const Line lines[] = {
      {R"({"text":"good"})", "good", false},
      {"{\"text\":\"caf\xe9.\"}", "caf\uFFFD.", true},
      {"{\"meta\":\"\xff\",\"text\":\"whole\"}", "whole", true},
      {"{\"\xff\":1,\"text\":\"\xe2\x82\"}", "\uFFFD", true},
      {R"({"text":"a\ud800b"})",
       "a\uFFFD"
       "b",
       true},
      {R"({"text":"\udc00\ud83d\uDE00\uD83D"})", "\uFFFD\U0001F600\uFFFD", true},
      {R"({"text":"\\ud800 \" \ud800"})", "\\ud800 \" \uFFFD", true},
      {R"({"text":"n","score":NaN,"most":-Infinity,"x":[Infinity,1e999,-2.5e-3]})", "n", false},
      {R"({"NaN":"Infinity","text":"NaN","y":NaN})", "NaN", false},
      {R"({"text":"a\u0000b"})", std::string("a\0b", 3), false},
      {"{\"text\":\"crlf\"}\r", "crlf", false},
      {"\xEF\xBB\xBF{\"text\":\"joined\"}", "joined", false},
  };
  std::string bytes = "\xEF\xBB\xBF\n";
  for (const auto& line : lines) bytes += line.json + "\n";
  for (const auto& path :
       {scratch.write("a.jsonl", bytes), scratch.write("a.jsonl.gz", gzip(bytes))}) {
    auto reader = DocumentReader::open({{path.string()}}).value();
    DocumentTexts texts("text", BadLines::refuse);
    std::size_t index = 0;
    while (const auto batch = reader.next()) {
      for (const auto& document : batch->documents) {
        REQUIRE(index < std::size(lines));
        CAPTURE(lines[index].json);
        CHECK(texts.of(*batch, document) == lines[index].text);
        CHECK(texts.is_repaired() == lines[index].is_repaired);
        ++index;
      }
    }
    CHECK(index == std::size(lines));
  }
}

TEST_CASE("lines that are no document are left out only when that is asked for") {
  const Scratch scratch;
  const auto path =
      scratch
          .write("a.jsonl",
                 "{\"text\":\"one\"}\n{\"text\":NaNa}\n[]\n{\"b\":1}\n{\"text\":\"\xff\"}\n"
                 "{\"text\":nu\n")
          .string();
  CHECK_THAT(failure_of({{path}}),
             Catch::Contains("a.jsonl' line 2: not valid JSON at line 1, column"));
  DocumentSources sources{{path}};
  sources.bad_lines = BadLines::skip;
  auto reader = DocumentReader::open(sources).value();
  DocumentTexts texts("text", BadLines::skip);
  std::string found;
  std::string skipped;
  while (const auto batch = reader.next()) {
    for (const auto& document : batch->documents) {
      found += std::string(texts.of(*batch, document)) + "|";
      if (texts.skipped()) skipped += format("{} ", document.line);
    }
  }
  CHECK(found == "one||||\uFFFD||");
  CHECK(skipped == "2 3 4 6 ");
}

TEST_CASE("a byte order mark is no part of a text, in each file of its own") {
  const Scratch scratch;
  const std::string mark = "\xEF\xBB\xBF";
  scratch.write("in/a.txt", mark + "one");
  scratch.write("in/b.txt", "t" + mark + "wo");
  scratch.write("in/c.txt.gz", gzip(mark + "three"));
  scratch.write("in/d.txt", mark);
  const DocumentSources sources{{(scratch / "in").string()}};
  CHECK(texts_of(sources) == std::vector<std::string>{"one", "t" + mark + "wo", "three"});
  auto reader = DocumentReader::open(sources).value();
  while (reader.next()) {
  }
  CHECK(reader.byte_order_marks() == 3);
}

TEST_CASE("a line of JSON is blank behind a byte order mark, too") {
  const Scratch scratch;
  const std::string mark = "\xEF\xBB\xBF";
  for (const auto* blank : {"", "\r", "  \t", " \r"}) {
    CAPTURE(blank);
    std::string text;
    for (const auto* line : {"\n{\"text\":\"a\"}\r\n", "\n{\"text\":\"b\"}"}) {
      text.append(mark).append(blank).append(line);
    }
    for (const auto& bytes : {text, gzip(text)}) {
      CHECK(texts_of({{scratch.write("in.jsonl", bytes).string()}}) ==
            std::vector<std::string>{"a", "b"});
    }
  }
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
