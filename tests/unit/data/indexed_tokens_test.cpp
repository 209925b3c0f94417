// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/indexed_tokens.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "scratch.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <thread>

using namespace trireme;
using namespace trireme::data;

namespace {

using Documents = std::vector<std::vector<std::int32_t>>;

const Documents small{{1, 2, 3}, {}, {40000, 5}, {6}};

void write(const std::filesystem::path& prefix, const Documents& documents, TokenType type) {
  auto writer = IndexedTokensWriter::create(prefix, type).value();
  for (const auto& document : documents) writer.append_document(document);
  writer.finish();
}

std::vector<std::int32_t> read_range(const IndexedTokens& tokens, TokenRange range) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(range.end - range.begin));
  tokens.read(range.begin, out);
  return out;
}

/// The bytes that Megatron-LM's writer makes of `documents`, spelt out.
std::string megatron_index(const Documents& documents, std::uint8_t code, std::int64_t width) {
  std::string bytes("MMIDIDX\0\0", 9);
  append_raw(bytes, std::uint64_t{1});
  append_raw(bytes, code);
  append_raw(bytes, std::uint64_t{documents.size()});
  append_raw(bytes, std::uint64_t{documents.size() + 1});
  for (const auto& document : documents) {
    append_raw(bytes, static_cast<std::int32_t>(document.size()));
  }
  std::int64_t pointer = 0;
  for (const auto& document : documents) {
    append_raw(bytes, pointer);
    pointer += width * static_cast<std::int64_t>(document.size());
  }
  for (std::size_t i = 0; i <= documents.size(); ++i) append_raw(bytes, std::uint64_t{i});
  return bytes;
}

std::string llm_c_file(std::int32_t magic, std::int32_t version, std::int32_t count,
                       const std::string& payload) {
  std::string bytes;
  append_raw(bytes, magic);
  append_raw(bytes, version);
  append_raw(bytes, count);
  bytes.resize(1024, '\0');
  return bytes + payload;
}

}  // namespace

TEST_CASE("what the writer writes is Megatron's format byte for byte") {
  const Scratch scratch;
  write(scratch / "a", small, TokenType::uint16);
  CHECK(file_bytes(scratch / "a.idx") == megatron_index(small, 8, 2));
  std::string tokens;
  for (const int token : {1, 2, 3, 40000, 5, 6}) {
    append_raw(tokens, static_cast<std::uint16_t>(token));
  }
  CHECK(file_bytes(scratch / "a.bin") == tokens);
  write(scratch / "b", small, TokenType::int32);
  CHECK(file_bytes(scratch / "b.idx") == megatron_index(small, 4, 4));
}

TEST_CASE("documents come back as they were written, in both token types") {
  const Scratch scratch;
  for (const auto type : {TokenType::uint16, TokenType::int32}) {
    write(scratch / "a", small, type);
    const auto tokens = IndexedTokens::open(scratch / "a").value();
    CHECK(tokens.token_type() == type);
    CHECK(tokens.token_count() == 6);
    REQUIRE(tokens.document_count() == 4);
    for (std::size_t i = 0; i < small.size(); ++i) {
      CHECK(read_range(tokens, tokens.document(static_cast<std::int64_t>(i))) == small[i]);
    }
    CHECK(read_range(tokens, {2, 5}) == std::vector<std::int32_t>{3, 40000, 5});
    CHECK(tokens.extremes()->largest == 40000);
    CHECK(tokens.extremes()->smallest == 1);
  }
  CHECK(IndexedTokens::open(scratch / "a.bin").ok());
  CHECK(IndexedTokens::open(scratch / "a.idx").ok());
  CHECK(smallest_token_type(65536) == TokenType::uint16);
  CHECK(smallest_token_type(65537) == TokenType::int32);
}

TEST_CASE("a document of several sequences spans them all") {
  const Scratch scratch;
  write(scratch / "a", {{1, 2}, {3}, {4, 5, 6}}, TokenType::int32);
  auto index = file_bytes(scratch / "a.idx");
  // Two documents: sequences 0 and 1, then sequence 2.
  index.resize(index.size() - 4 * sizeof(std::uint64_t));
  for (const auto start : std::array<std::uint64_t, 3>{0, 2, 3}) append_raw(index, start);
  index[26] = 3;
  write_bytes(scratch / "a.idx", index);
  const auto tokens = IndexedTokens::open(scratch / "a").value();
  CHECK(tokens.sequence_count() == 3);
  REQUIRE(tokens.document_count() == 2);
  CHECK(tokens.document(0) == TokenRange{0, 3});
  CHECK(tokens.document(1) == TokenRange{3, 6});
}

TEST_CASE("an unfinished writer leaves nothing and a finished one replaces what was there") {
  const Scratch scratch;
  write(scratch / "a", {{1}}, TokenType::uint16);
  {
    auto writer = IndexedTokensWriter::create(scratch / "a", TokenType::uint16).value();
    writer.append_document(std::vector<std::int32_t>{7, 8});
  }
  CHECK(IndexedTokens::open(scratch / "a")->token_count() == 1);
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
  write(scratch / "a", {{7, 8}}, TokenType::int32);
  CHECK(IndexedTokens::open(scratch / "a")->token_count() == 2);
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 2);
}

TEST_CASE("llm.c files are read in both of their versions") {
  const Scratch scratch;
  std::string narrow;
  for (const int token : {50256, 1, 2}) append_raw(narrow, static_cast<std::uint16_t>(token));
  write_bytes(scratch / "gpt2.bin", llm_c_file(20240520, 1, 3, narrow));
  const auto tokens = IndexedTokens::open(scratch / "gpt2.bin").value();
  CHECK(tokens.file_format() == TokenFormat::llm_c);
  CHECK(tokens.document_count() == 1);
  CHECK(read_range(tokens, tokens.document(0)) == std::vector<std::int32_t>{50256, 1, 2});

  std::string wide;
  for (const std::uint32_t token : {128000U, 7U}) append_raw(wide, token);
  write_bytes(scratch / "llama.bin", llm_c_file(20240801, 7, 2, wide));
  const auto llama = IndexedTokens::open(scratch / "llama").value();
  CHECK(read_range(llama, {0, 2}) == std::vector<std::int32_t>{128000, 7});
}

TEST_CASE("damaged token files are refused with file, field, expected and found") {
  const Scratch scratch;
  write(scratch / "a", small, TokenType::uint16);
  const auto index = file_bytes(scratch / "a.idx");
  const auto refused = [&](const std::string& bytes, const std::string& words) {
    write_bytes(scratch / "a.idx", bytes);
    const auto result = IndexedTokens::open(scratch / "a");
    REQUIRE_FALSE(result.ok());
    CHECK(result.failure().code == base::ExitCode::checkpoint);
    CHECK_THAT(result.failure().text, Catch::Contains(words));
    CHECK_THAT(result.failure().text, Catch::Contains("a."));
  };
  const auto with = [&](std::size_t offset, char byte) {
    auto bytes = index;
    bytes[offset] = byte;
    return bytes;
  };
  refused(index.substr(0, 20), "size is 20 bytes, expected at least the header's 34 bytes");
  refused(with(0, 'X'), "MMIDIDX");
  refused(with(9, 2), "version is 2, expected 1");
  refused(with(17, 7), "token type is 7, expected 4 (int32) or 8 (uint16)");
  refused(with(25, 0x7F), "sequence count is ");
  refused(with(33, 0x7F), "document index count is ");
  refused(with(18, 3), "expected 110 bytes for 3 sequences");
  refused(index + "x", "size is 123 bytes, expected 122 bytes");
  refused(with(34, 4), "byte pointer of sequence 1 is 6, expected 8");
  refused(with(37, '\x80'), "length of sequence 0 is -2147483645");
  refused(with(82 + 8, 9), "document index 1 is 9, expected 0 to 4");
  refused(with(82, 1), "document index 0 is 1, expected 0");
  refused(with(82 + 32, 3), "document index 4 is 3, expected 4");
  write_bytes(scratch / "a.idx", index);
  write_bytes(scratch / "a.bin", file_bytes(scratch / "a.bin").substr(0, 11));
  refused(index, "size is 11 bytes, expected 12 bytes, as 'a.idx' says (6 tokens of uint16)");
  std::filesystem::remove(scratch / "a.bin");
  refused(index, "cannot open");
  std::filesystem::remove(scratch / "a.idx");
  CHECK_THAT(IndexedTokens::open(scratch / "a").failure().text,
             Catch::Contains("there are no tokens at"));

  for (const auto& [bytes, words] : std::vector<std::pair<std::string, std::string>>{
           {"short", "size is 5 bytes"},
           {llm_c_file(1, 1, 0, ""), "magic number is 1"},
           {llm_c_file(20240520, 2, 0, ""), "version is 2, expected 1"},
           {llm_c_file(20240520, 1, 3, "abcd"), "token count is 3, expected 2"},
           {llm_c_file(20240520, 1, 2, "abcde"), "token count is 2"},
           {llm_c_file(20240520, 1, -1, ""), "token count is -1"}}) {
    write_bytes(scratch / "c.bin", bytes);
    const auto result = IndexedTokens::open(scratch / "c");
    REQUIRE_FALSE(result.ok());
    CHECK_THAT(result.failure().text, Catch::Contains(words));
  }
}

TEST_CASE("no flipped bit and no cut makes the reader read outside its files") {
  const Scratch scratch;
  write(scratch / "a", small, TokenType::uint16);
  const auto index = file_bytes(scratch / "a.idx");
  const auto use = [&](const std::string& bytes) {
    write_bytes(scratch / "a.idx", bytes);
    const auto tokens = IndexedTokens::open(scratch / "a");
    if (!tokens) return false;
    for (std::int64_t i = 0; i < tokens->document_count(); ++i) {
      const auto range = tokens->document(i);
      REQUIRE(range.begin <= range.end);
      read_range(*tokens, range);
    }
    return true;
  };
  int accepted = 0;
  for (std::size_t bit = 0; bit < 8 * index.size(); ++bit) {
    auto bytes = index;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    accepted += use(bytes) ? 1 : 0;
  }
  // Only where documents begin may move without a contradiction.
  CHECK(accepted <= 24);
  for (std::size_t size = 0; size < index.size(); ++size) CHECK_FALSE(use(index.substr(0, size)));
}

TEST_CASE("who leaves the check of an index to another process reads its sizes alone") {
  const Scratch scratch;
  write(scratch / "a", small, TokenType::uint16);
  const auto index = file_bytes(scratch / "a.idx");
  const auto sizes_of = [&](const std::string& bytes) {
    write_bytes(scratch / "a.idx", bytes);
    return IndexedTokens::open(scratch / "a", FileCheck::sizes);
  };
  const auto whole = IndexedTokens::open(scratch / "a").value();
  const auto by_size = sizes_of(index).value();
  CHECK(by_size.token_count() == whole.token_count());
  CHECK(by_size.document_count() == whole.document_count());
  CHECK(read_range(by_size, {0, 6}) == read_range(whole, {0, 6}));
  // A byte pointer that only a look at all sequences finds wrong.
  auto wrong = index;
  wrong[34 + 4 * small.size() + 8] = 1;
  CHECK(sizes_of(wrong).ok());
  CHECK_FALSE(IndexedTokens::open(scratch / "a").ok());
  CHECK_FALSE(sizes_of(index + "x").ok());
  write_bytes(scratch / "a.bin", file_bytes(scratch / "a.bin").substr(0, 11));
  CHECK_THAT(sizes_of(index).failure().text, Catch::Contains("size is 11 bytes, expected 10"));
}

TEST_CASE("a fingerprint follows the content, not the place or the width of tokens") {
  const Scratch scratch;
  write(scratch / "a", {{1, 2, 3}}, TokenType::uint16);
  write(scratch / "b", {{1, 2, 3}}, TokenType::int32);
  write(scratch / "c", {{1, 2, 4}}, TokenType::int32);
  const auto of = [&](const char* name) {
    return IndexedTokens::open(scratch / name)->fingerprint();
  };
  CHECK(of("a") == of("b"));
  CHECK(of("a") != of("c"));
}

TEST_CASE("tokens whose file is cut short while they are read end in words that name it") {
  const Scratch scratch;
  const auto type = GENERATE(TokenType::uint16, TokenType::int32);
  // Eight documents of 4096 tokens: each begins a page of its own, in both types.
  write(scratch / "a", Documents(8, std::vector<std::int32_t>(4096, 7)), type);
  const auto tokens = IndexedTokens::open(scratch / "a").value();
  const auto name = (scratch / "a.bin").string();
  std::filesystem::resize_file(name, 4096 * bytes_per_token(type));
  const auto refusal = [&](std::int64_t document) -> std::string {
    try {
      read_range(tokens, tokens.document(document));
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::checkpoint);
      return error.what();
    }
    return "";
  };
  // Again and again, and on any thread.
  for (int time = 0; time < 3; ++time) {
    CHECK(refusal(0).empty());
    CHECK_THAT(refusal(3), Catch::Contains("'" + name + "' cannot be read any more at byte"));
  }
  std::string elsewhere;
  std::thread([&] { elsewhere = refusal(7); }).join();
  CHECK_THAT(elsewhere, Catch::Contains(base::format("it was cut from {} to {} bytes",
                                                     8 * 4096 * bytes_per_token(type),
                                                     4096 * bytes_per_token(type))));
}

TEST_CASE("an index that is cut short while it is read ends in words that name it") {
  const Scratch scratch;
  write(scratch / "a", Documents(4096, {1, 2}), TokenType::uint16);
  const auto tokens = IndexedTokens::open(scratch / "a").value();
  std::filesystem::resize_file(scratch / "a.idx", 4096);
  CHECK_THROWS_WITH(tokens.document(4000), Catch::Contains((scratch / "a.idx").string()));
}
