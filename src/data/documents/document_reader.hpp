// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/documents.hpp"

#include "data/documents/compressed.hpp"
#include "data/tokenizer/text/regex.hpp"
#include "data/tokens/mapped_file.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::data {

/// Document as stored in a file.
struct RawDocument {
  std::string_view text;  ///< the text, or the line of JSON that holds it
  bool is_json = false;
  std::int64_t line = 0;  ///< of a JSON object, from 1
  /// False for a part of a document that goes on.
  bool ends_document = true;
  /// Byte at which it begins in its file of plain text, decompressed.
  std::uint64_t begins_at = 0;
};

/// About a mebibyte of documents of one file, or a larger document.
struct DocumentBatch {
  std::shared_ptr<const void> owner;  ///< keeps the views alive
  std::shared_ptr<const std::string> source;
  std::vector<RawDocument> documents;
};

/// Finds the texts of raw documents, for one thread.
class DocumentTexts {
 public:
  DocumentTexts(std::string text_field, BadLines bad_lines)
      : text_field_(std::move(text_field)), bad_lines_(bad_lines) {}

  /// The text, which is good until the next call; empty for a line that is skipped. Throws
  /// base::Error (exit code 6) that names file and line when the JSON is not what it should be, or
  /// file and byte of a NUL in plain text.
  std::string_view of(const DocumentBatch& batch, const RawDocument& document);

  /// True when something in the last document's line became U+FFFD. (Of plain text only its reader
  /// knows.)
  bool is_repaired() const { return is_repaired_; }
  /// Fault of the last document's line, if it is skipped.
  const std::optional<std::string>& skipped() const { return skipped_; }

 private:
  base::Status take_text(const DocumentBatch& batch, const RawDocument& document);

  std::string text_field_;
  BadLines bad_lines_;
  std::string storage_;
  bool is_repaired_ = false;
  std::optional<std::string> skipped_;
};

/// Hash of the beginning of a text, which decides whether it is held out: independent of the text's
/// place, so that a document that occurs twice is not in both files.
std::uint64_t document_hash(std::string_view text);

/// Reads the documents of many files, one batch at a time.
class DocumentReader {
 public:
  /// Lists the files; a path that does not exist, or that holds no file, is a failure.
  static base::Result<DocumentReader> open(const DocumentSources& sources);

  /// Next batch; none when all is read. Throws base::Error for files that cannot be read.
  std::optional<DocumentBatch> next();

  ReadProgress progress() const;
  /// Files of plain text so far whose byte order mark was left out.
  std::int64_t byte_order_marks() const { return byte_order_marks_; }

 private:
  DocumentReader() = default;

  /// A stretch of a file that ends where a document does, or at the end of the file.
  struct Block {
    std::shared_ptr<const void> owner;
    std::string_view text;
    const char* file_begin = nullptr;  ///< of plain text
  };
  base::Status add_path(const std::filesystem::path& path);
  base::Status add_file(const std::filesystem::path& path);
  bool open_next_file();
  bool load_next_block();
  void load_whole_text();
  void load_compressed_text(CompressedText& compressed);
  bool load_compressed_lines(CompressedText& compressed);
  void take_text(DocumentBatch& batch);
  void take_lines(DocumentBatch& batch);

  std::vector<std::filesystem::path> files_;
  std::optional<Matcher> separator_;
  std::uint64_t bytes_total_ = 0;

  std::size_t next_file_ = 0;
  std::uint64_t bytes_done_ = 0;  ///< of the files before the current one
  std::shared_ptr<const std::string> source_;
  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<CompressedText> compressed_;
  bool is_json_ = false;
  bool whole_file_given_ = false;
  std::string unfinished_line_;
  std::int64_t line_ = 0;
  std::int64_t byte_order_marks_ = 0;
  Block block_;
};

}  // namespace trireme::data
