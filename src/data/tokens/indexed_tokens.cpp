// SPDX-License-Identifier: Apache-2.0
#include "trireme/data/indexed_tokens.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "data/tokenizer/hash.hpp"
#include "data/tokens/mapped_file.hpp"
#include "data/tokens/megatron_index.hpp"

#include <algorithm>
#include <limits>

namespace trireme::data {
namespace {

using base::Failure;
using base::format;
using base::Result;
using base::Status;
using Bytes = std::span<const std::byte>;
using Index = MegatronIndex;

/// A failure in the words that all damaged files share.
Failure wrong_field(const std::filesystem::path& path, const std::string& field,
                    const std::string& expected, const std::string& found) {
  return {base::ExitCode::checkpoint,
          format("'{}': {} is {}, expected {} (the file is damaged, cut short or of another kind); "
                 "prepare or copy it again",
                 path.string(), field, found, expected)};
}

/// Offsets of the three arrays of a checked .idx.
struct IndexLayout {
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::size_t lengths = 0;
  std::size_t pointers = 0;
  std::size_t document_starts = 0;
};

std::int64_t element(Bytes index, std::size_t array, std::int64_t position) {
  return load<std::int64_t>(index, array + 8 * static_cast<std::size_t>(position));
}

Result<TokenType> read_token_type(Bytes index, const std::filesystem::path& path) {
  if (index.size() < Index::header_bytes) {
    return wrong_field(path, "size", format("at least the header's {} bytes", Index::header_bytes),
                       format("{} bytes", index.size()));
  }
  if (std::memcmp(index.data(), Index::magic.data(), Index::magic.size()) != 0) {
    return wrong_field(path, "the first 9 bytes", "'MMIDIDX' and two zeros", "something else");
  }
  const auto version = load<std::uint64_t>(index, Index::version_offset);
  if (version != Index::version) {
    return wrong_field(path, "version", format("{}", Index::version), format("{}", version));
  }
  const auto code = load<std::uint8_t>(index, Index::type_offset);
  if (code == Index::code_int32) return TokenType::int32;
  if (code == Index::code_uint16) return TokenType::uint16;
  return wrong_field(path, "token type", "4 (int32) or 8 (uint16)", format("{}", code));
}

Result<IndexLayout> read_layout(Bytes index, const std::filesystem::path& path) {
  const auto sequences = load<std::uint64_t>(index, Index::sequences_offset);
  const auto documents = load<std::uint64_t>(index, Index::documents_offset);
  const auto room = index.size() - Index::header_bytes;
  // Limits first: the sum of what a damaged header claims may overflow.
  if (sequences > room / 12) {
    return wrong_field(path, "sequence count", format("at most {} by the file's size", room / 12),
                       format("{}", sequences));
  }
  if (documents == 0 || documents > room / 8) {
    return wrong_field(path, "document index count", format("1 to {} by the file's size", room / 8),
                       format("{}", documents));
  }
  const auto expected = Index::header_bytes + 12 * sequences + 8 * documents;
  if (expected != index.size()) {
    return wrong_field(
        path, "size",
        format("{} bytes for {} sequences and {} document indices (multimodal sequence modes are "
               "not read)",
               expected, sequences, documents),
        format("{} bytes", index.size()));
  }
  IndexLayout layout;
  layout.sequences = static_cast<std::int64_t>(sequences);
  layout.documents = static_cast<std::int64_t>(documents) - 1;
  layout.lengths = Index::header_bytes;
  layout.pointers = layout.lengths + 4 * sequences;
  layout.document_starts = layout.pointers + 8 * sequences;
  return layout;
}

/// Sequences must follow each other without gaps and fill the .bin exactly. Returns their tokens.
Result<std::int64_t> check_sequences(Bytes index, const IndexLayout& layout,
                                     std::size_t token_bytes, const std::filesystem::path& path) {
  std::int64_t tokens = 0;
  const auto bytes_of_token = static_cast<std::int64_t>(token_bytes);
  constexpr auto most = std::numeric_limits<std::int64_t>::max() / 8;
  for (std::int64_t i = 0; i < layout.sequences; ++i) {
    const auto length = load<std::int32_t>(index, layout.lengths + 4 * static_cast<std::size_t>(i));
    if (length < 0 || tokens > most) {
      return wrong_field(path, format("length of sequence {}", i), "zero or more",
                         format("{}", length));
    }
    const auto pointer = element(index, layout.pointers, i);
    if (pointer != tokens * bytes_of_token) {
      return wrong_field(path, format("byte pointer of sequence {}", i),
                         format("{} (the end of the one before)", tokens * bytes_of_token),
                         format("{}", pointer));
    }
    tokens += length;
  }
  return tokens;
}

Status check_documents(Bytes index, const IndexLayout& layout, const std::filesystem::path& path) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i <= layout.documents; ++i) {
    const auto start = element(index, layout.document_starts, i);
    const bool last = i == layout.documents;
    const auto lowest = last ? layout.sequences : before;
    const auto highest = i == 0 && !last ? 0 : layout.sequences;
    if (start < lowest || start > highest) {
      return wrong_field(
          path, format("document index {}", i),
          lowest == highest ? format("{}", lowest) : format("{} to {}", lowest, highest),
          format("{}", start));
    }
    before = start;
  }
  return {};
}

/// Touches all pages of the first `count` bytes once, under guard, so that later checks can read
/// them.
Status check_storage(const MappedFile& file, std::size_t count) {
  constexpr std::size_t page = 4096;
  const auto bytes = file.bytes().first(std::min(count, file.size()));
  try {
    file.guard([&] {
      for (std::size_t at = 0; at < bytes.size(); at += page) {
        static_cast<void>(*static_cast<const volatile std::byte*>(bytes.data() + at));
      }
    });
  } catch (const base::Error& error) {
    return Failure{error.code(), error.what()};
  }
  return {};
}

struct LlmCHeader {
  std::int32_t magic;
  std::int32_t version;
  std::size_t token_bytes;
};
constexpr std::array<LlmCHeader, 2> llm_c_headers{{{20240520, 1, 2}, {20240801, 7, 4}}};
constexpr std::size_t llm_c_header_bytes = 1024;

std::filesystem::path with_suffix(std::filesystem::path path, const char* suffix) {
  path += suffix;
  return path;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

struct IndexedTokens::Content {
  std::filesystem::path path;
  TokenFormat format = TokenFormat::megatron;
  TokenType type = TokenType::uint16;
  MappedFile tokens;
  MappedFile index;       // empty without an index
  IndexLayout layout;     // of the index
  std::size_t first = 0;  // bytes before the first token
  std::int64_t token_count = 0;
};

std::size_t bytes_per_token(TokenType type) {
  return type == TokenType::uint16 ? 2 : 4;
}

const char* text(TokenType type) {
  return type == TokenType::uint16 ? "uint16" : "int32";
}

const char* text(TokenFormat format) {
  return format == TokenFormat::megatron ? "Megatron .bin/.idx" : "llm.c .bin";
}

TokenType smallest_token_type(std::int64_t vocab_size) {
  return vocab_size <= 65536 ? TokenType::uint16 : TokenType::int32;
}

Result<IndexedTokens> IndexedTokens::open(const std::filesystem::path& path, FileCheck check) {
  auto prefix = path;
  if (path.extension() == ".idx" || path.extension() == ".bin") prefix.replace_extension();
  const auto index = with_suffix(prefix, ".idx");
  const auto tokens = with_suffix(prefix, ".bin");
  if (is_there(index)) return open_megatron(index, tokens, check);
  if (path.extension() != ".idx" && is_there(tokens)) return open_llm_c(tokens);
  return Failure{base::ExitCode::checkpoint,
                 format("there are no tokens at '{}' (neither '{}' nor '{}' exists); make them "
                        "with 'trireme data prepare --out {}'",
                        path.string(), index.string(), tokens.string(), prefix.string())};
}

Result<IndexedTokens> IndexedTokens::open_megatron(const std::filesystem::path& index,
                                                   const std::filesystem::path& tokens,
                                                   FileCheck check) {
  auto content = std::make_shared<Content>();
  auto index_file = MappedFile::open(index);
  if (!index_file) return index_file.failure();
  const auto bytes = index_file->bytes();
  const auto checked = check == FileCheck::whole ? bytes.size() : Index::header_bytes;
  if (const auto status = check_storage(*index_file, checked); !status) return status.failure();
  const auto type = read_token_type(bytes, index);
  if (!type) return type.failure();
  const auto layout = read_layout(bytes, index);
  if (!layout) return layout.failure();
  const auto token_bytes = bytes_per_token(*type);
  auto token_file = MappedFile::open(tokens);
  Result<std::int64_t> count =
      token_file ? static_cast<std::int64_t>(token_file->size() / token_bytes) : 0;
  if (check == FileCheck::whole) {
    count = check_sequences(bytes, *layout, token_bytes, index);
    if (!count) return count.failure();
    if (const auto status = check_documents(bytes, *layout, index); !status) {
      return status.failure();
    }
  }
  if (!token_file) return token_file.failure();
  const auto expected = static_cast<std::uint64_t>(*count) * token_bytes;
  if (token_file->size() != expected) {
    return wrong_field(tokens, "size",
                       format("{} bytes, as '{}' says ({} tokens of {})", expected,
                              index.filename().string(), *count, text(*type)),
                       format("{} bytes", token_file->size()));
  }
  content->path = tokens;
  content->type = *type;
  content->layout = *layout;
  content->token_count = *count;
  content->index = std::move(index_file).value();
  content->tokens = std::move(token_file).value();
  return IndexedTokens(std::move(content));
}

Result<IndexedTokens> IndexedTokens::open_llm_c(const std::filesystem::path& tokens) {
  auto file = MappedFile::open(tokens);
  if (!file) return file.failure();
  const auto bytes = file->bytes();
  if (bytes.size() < llm_c_header_bytes) {
    return wrong_field(tokens, "size",
                       format("at least llm.c's header of {} bytes (there is no .idx beside it)",
                              llm_c_header_bytes),
                       format("{} bytes", bytes.size()));
  }
  const auto magic = load<std::int32_t>(bytes, 0);
  const auto header = std::find_if(llm_c_headers.begin(), llm_c_headers.end(),
                                   [&](const auto& known) { return known.magic == magic; });
  if (header == llm_c_headers.end()) {
    return wrong_field(tokens, "magic number",
                       "llm.c's 20240520 or 20240801 (there is no .idx beside it)",
                       format("{}", magic));
  }
  if (const auto version = load<std::int32_t>(bytes, 4); version != header->version) {
    return wrong_field(tokens, "version", format("{}", header->version), format("{}", version));
  }
  const auto count = load<std::int32_t>(bytes, 8);
  const auto present = (bytes.size() - llm_c_header_bytes) / header->token_bytes;
  const bool whole = (bytes.size() - llm_c_header_bytes) % header->token_bytes == 0;
  if (count < 0 || static_cast<std::uint64_t>(count) != present || !whole) {
    return wrong_field(tokens, "token count",
                       format("{} by the file's size of {} bytes", present, bytes.size()),
                       format("{}", count));
  }
  auto content = std::make_shared<Content>();
  content->path = tokens;
  content->format = TokenFormat::llm_c;
  content->type = header->token_bytes == 2 ? TokenType::uint16 : TokenType::int32;
  content->first = llm_c_header_bytes;
  content->token_count = count;
  content->tokens = std::move(file).value();
  return IndexedTokens(std::move(content));
}

std::int64_t IndexedTokens::token_count() const {
  return content_->token_count;
}
TokenType IndexedTokens::token_type() const {
  return content_->type;
}
TokenFormat IndexedTokens::file_format() const {
  return content_->format;
}
const std::filesystem::path& IndexedTokens::path() const {
  return content_->path;
}

std::int64_t IndexedTokens::sequence_count() const {
  return file_format() == TokenFormat::megatron ? content_->layout.sequences : 1;
}
std::int64_t IndexedTokens::document_count() const {
  return file_format() == TokenFormat::megatron ? content_->layout.documents : 1;
}

TokenRange IndexedTokens::document(std::int64_t index) const {
  TRIREME_EXPECT(index >= 0 && index < document_count(), "document index in range");
  if (file_format() == TokenFormat::llm_c) return {0, token_count()};
  const auto bytes = content_->index.bytes();
  const auto& layout = content_->layout;
  const auto start_of = [&](std::int64_t sequence) {
    if (sequence < 0 || sequence >= layout.sequences) return token_count();
    return element(bytes, layout.pointers, sequence) /
           static_cast<std::int64_t>(bytes_per_token(token_type()));
  };
  TokenRange range;
  content_->index.guard([&] {
    range = {start_of(element(bytes, layout.document_starts, index)),
             start_of(element(bytes, layout.document_starts, index + 1))};
  });
  return range;
}

void IndexedTokens::read(std::int64_t begin, std::span<std::int32_t> tokens) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  TRIREME_EXPECT(begin >= 0 && begin <= token_count() - count, "tokens within the stream");
  const auto width = bytes_per_token(token_type());
  const auto* const source =
      content_->tokens.bytes().data() + content_->first + width * static_cast<std::size_t>(begin);
  if (tokens.empty()) return;
  content_->tokens.guard([&] {
    if (token_type() == TokenType::int32) {
      std::memcpy(tokens.data(), source, tokens.size_bytes());
      return;
    }
    const auto* at = source;
    for (auto& token : tokens) {
      std::uint16_t narrow;
      std::memcpy(&narrow, at, sizeof narrow);
      token = narrow;
      at += sizeof narrow;
    }
  });
}

namespace {

/// Calls visit(tokens) for at most `max_blocks` evenly spaced blocks, first and last among them.
template <typename Visit>
void visit_blocks(const IndexedTokens& stream, std::int64_t max_blocks, Visit&& visit) {
  constexpr std::int64_t block_tokens = 1024;
  const auto count = stream.token_count();
  const auto all_blocks = (count + block_tokens - 1) / block_tokens;
  const auto blocks = std::min(all_blocks, max_blocks);
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < blocks; ++i) {
    const auto block = blocks == 1 ? 0 : i * (all_blocks - 1) / (blocks - 1);
    const auto begin = block * block_tokens;
    tokens.resize(static_cast<std::size_t>(std::min(block_tokens, count - begin)));
    stream.read(begin, tokens);
    visit(std::span<const std::int32_t>(tokens));
  }
}

}  // namespace

std::optional<IndexedTokens::Extremes> IndexedTokens::extremes(std::int64_t max_blocks) const {
  if (token_count() == 0) return std::nullopt;
  Extremes found{std::numeric_limits<std::int32_t>::max(),
                 std::numeric_limits<std::int32_t>::min()};
  visit_blocks(*this, max_blocks, [&](std::span<const std::int32_t> tokens) {
    for (const auto token : tokens) {
      found.smallest = std::min(found.smallest, token);
      found.largest = std::max(found.largest, token);
    }
  });
  return found;
}

std::uint64_t IndexedTokens::fingerprint() const {
  auto hash = mix(0, static_cast<std::uint64_t>(token_count()));
  visit_blocks(*this, 4096, [&](std::span<const std::int32_t> tokens) {
    for (const auto token : tokens) hash = mix(hash, static_cast<std::uint32_t>(token));
  });
  return hash;
}

}  // namespace trireme::data
