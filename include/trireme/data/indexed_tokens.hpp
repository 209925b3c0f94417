// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::data {

/// Integer type of a stored token.
enum class TokenType { uint16, int32 };

std::size_t bytes_per_token(TokenType type);
/// "uint16", "int32".
const char* text(TokenType type);
/// uint16 when every id of the vocabulary fits, else int32.
TokenType smallest_token_type(std::int64_t vocab_size);

enum class TokenFormat {
  megatron,  ///< PREFIX.bin and PREFIX.idx (facts of Megatron-LM's IndexedDataset)
  llm_c,     ///< one .bin with a 1 KiB header, as llm.c writes
};
/// "Megatron .bin/.idx", "llm.c .bin".
const char* text(TokenFormat format);

/// How much of token files is read to check them.
enum class FileCheck {
  whole,  ///< all of the index
  sizes   ///< headers and sizes: another process checks the same files
};

/// A half-open range of tokens [begin, end) of a stream.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool operator==(const TokenRange&) const = default;
};

/// A token file, memory-mapped and read-only: one stream of tokens, and where its documents lie.
/// Copies share the mapping; all members may be called from several threads.
class IndexedTokens {
 public:
  /// `path` is a prefix (PREFIX.idx with PREFIX.bin, else PREFIX.bin of llm.c) or one of these
  /// files. Every field is checked against the sizes of the files before it is used. Failures
  /// (exit code 6) name file, field, what was expected and what was found. With FileCheck::sizes
  /// document() is not to be trusted.
  static base::Result<IndexedTokens> open(const std::filesystem::path& path,
                                          FileCheck check = FileCheck::whole);

  std::int64_t token_count() const;
  TokenType token_type() const;
  TokenFormat file_format() const;
  /// The file that holds the tokens.
  const std::filesystem::path& path() const;

  /// Sequences and documents of the index; a stream without an index is one of each.
  std::int64_t sequence_count() const;
  std::int64_t document_count() const;
  /// The tokens of document `index`, 0 <= index < document_count().
  TokenRange document(std::int64_t index) const;

  /// Copies tokens [begin, begin + tokens.size()) of the stream.
  void read(std::int64_t begin, std::span<std::int32_t> tokens) const;

  /// For each of the tokens [begin, begin + starts.size()): the first of them that is of the same
  /// document, counted from `begin`; 0 for a document that begins earlier. Throws base::Error (exit
  /// code 6) for an index that contradicts itself, however much of it was checked.
  void document_starts(std::int64_t begin, std::span<std::int32_t> starts) const;

  /// Largest and smallest id among all tokens, or among `max_blocks` evenly spaced blocks of 1024
  /// tokens (the first and the last among them); nothing for an empty stream.
  struct Extremes {
    std::int32_t smallest = 0;
    std::int32_t largest = 0;
  };
  std::optional<Extremes> extremes(std::int64_t max_blocks = INT64_MAX) const;

  /// Equal for equal streams, wherever the files lie; made of the count and of 4096 evenly spaced
  /// blocks, so that it is as quick for a terabyte as for 16 MiB.
  std::uint64_t fingerprint() const;

 private:
  struct Content;
  explicit IndexedTokens(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  static base::Result<IndexedTokens> open_megatron(const std::filesystem::path& index,
                                                   const std::filesystem::path& tokens,
                                                   FileCheck check);
  static base::Result<IndexedTokens> open_llm_c(const std::filesystem::path& tokens);

  std::shared_ptr<const Content> content_;
};

/// Writes PREFIX.bin and PREFIX.idx, one sequence a document. Nothing appears under these names
/// before finish(); a writer that is dropped unfinished leaves nothing behind. Failures of the
/// file system are thrown as base::Error.
class IndexedTokensWriter {
 public:
  static base::Result<IndexedTokensWriter> create(const std::filesystem::path& prefix,
                                                  TokenType type);
  IndexedTokensWriter(const IndexedTokensWriter&) = delete;
  IndexedTokensWriter& operator=(const IndexedTokensWriter&) = delete;
  IndexedTokensWriter(IndexedTokensWriter&&) noexcept;
  IndexedTokensWriter& operator=(IndexedTokensWriter&&) noexcept;
  ~IndexedTokensWriter();

  /// Appends a document; every id must fit the token type.
  void append_document(std::span<const std::int32_t> tokens);
  std::int64_t document_count() const;
  std::int64_t token_count() const;

  /// Flushes, syncs and renames both files into place.
  void finish();

 private:
  struct State;
  explicit IndexedTokensWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
