// SPDX-License-Identifier: Apache-2.0
#include "data/documents/document_reader.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utf8.hpp"

#include "data/documents/text_check.hpp"
#include "data/tokenizer/hash.hpp"

#include <algorithm>

namespace trireme::data {
namespace {

using base::Error;
using base::ExitCode;
using base::Failure;
using base::format;
using base::Status;

constexpr std::size_t batch_bytes = std::size_t{1} << 20;
constexpr std::size_t compressed_block_bytes = std::size_t{4} << 20;
/// Limits of text that must be in memory at once: a decompressed text file, or a line.
constexpr std::size_t most_compressed_text_bytes = std::size_t{4} << 30;
constexpr std::size_t most_line_bytes = std::size_t{1} << 30;
/// Plain text that is looked at before any file is read.
constexpr std::size_t early_bytes = std::size_t{64} << 10;

bool is_hidden(const std::filesystem::path& path) {
  return path.filename().native().starts_with('.');
}

/// Ending of the name, without one for compression.
std::string ending_of(const std::filesystem::path& path) {
  const auto ending = path.extension();
  if (ending == ".gz" || ending == ".zst" || ending == ".zstd") return ending_of(path.stem());
  return ending.string();
}

bool names_json_lines(const std::filesystem::path& path) {
  const auto ending = ending_of(path);
  return ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
}

/// Warns about tables: their text is rarely meant to be read as it is.
void say_tables(const std::vector<std::filesystem::path>& files) {
  const auto is_table = [](const std::filesystem::path& path) {
    const auto ending = ending_of(path);
    return ending == ".csv" || ending == ".tsv";
  };
  const auto first = std::find_if(files.begin(), files.end(), is_table);
  if (first == files.end()) return;
  base::log::warning(
      "data",
      "{} of {} inputs are tables ('{}'): each is read as plain text, commas and header included; "
      "to train on one column, write it as JSON lines",
      std::count_if(first, files.end(), is_table), files.size(), first->string());
}

/// A mark begins the lines of JSON at which files were joined.
bool is_blank(std::string_view text) {
  if (text.starts_with(base::byte_order_mark)) text.remove_prefix(base::byte_order_mark.size());
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
}

}  // namespace

std::uint64_t document_hash(std::string_view text) {
  // Prefix only: the result must be the same when only the first part is in memory.
  constexpr std::size_t most = 4096;
  return hash_bytes(text.substr(0, most));
}

base::Result<DocumentReader> DocumentReader::open(const DocumentSources& sources) {
  DocumentReader reader;
  if (!sources.separator.empty()) {
    const bool blank_line = sources.separator == "blank-line";
    auto regex =
        Regex::compile_bytes(blank_line ? "\\r?\\n(?:[ \\t]*\\r?\\n)+" : sources.separator);
    if (!regex) return regex.failure();
    if (regex->matches_empty()) {
      return base::usage_failure(
          format("--document-separator '{}' matches the empty text (every character would be a "
                 "document); write an expression that always takes a character",
                 sources.separator));
    }
    reader.separator_.emplace(std::move(regex).value());
  }
  for (const auto& path : sources.paths) {
    if (auto status = reader.add_path(path); !status) return status.failure();
  }
  if (reader.files_.empty()) {
    return base::usage_failure(
        "there is no file to read (no input was named, or its folders hold "
        "none); name files or folders with --input");
  }
  say_tables(reader.files_);
  return reader;
}

Status DocumentReader::add_path(const std::filesystem::path& path) {
  std::error_code error;
  const auto kind = std::filesystem::status(path, error).type();
  if (kind != std::filesystem::file_type::directory) return add_file(path);
  std::vector<std::filesystem::path> found;
  const auto options = std::filesystem::directory_options::none;
  auto entry = std::filesystem::recursive_directory_iterator(path, options, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    const bool hidden = is_hidden(entry->path());
    if (hidden && entry->is_directory(error)) entry.disable_recursion_pending();
    if (!hidden && entry->is_regular_file(error)) found.push_back(entry->path());
  }
  if (error) {
    return Failure{ExitCode::checkpoint,
                   format("cannot list folder '{}': {}", path.string(), error.message())};
  }
  std::sort(found.begin(), found.end());
  for (const auto& file : found) {
    if (auto status = add_file(file); !status) return status;
  }
  return {};
}

Status DocumentReader::add_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    return Failure{ExitCode::checkpoint,
                   format("cannot read input '{}': {}", path.string(), error.message())};
  }
  const auto file = MappedFile::open(path);
  if (!file) return file.failure();
  // Checked before hours of reading: the last file of a folder may be one that is not text.
  // Decompressed text, and plain text further on, are checked when they are read.
  if (!open_compressed(file->bytes(), path.string())) {
    const auto bytes = file->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (auto status = check_format(text, path.string()); !status) return status;
    if (!names_json_lines(path)) {
      const auto beginning = text.substr(0, early_bytes);
      if (auto status = check_plain_text(beginning, 0, path.string()); !status) return status;
    }
  }
  bytes_total_ += size;
  files_.push_back(path);
  return {};
}

ReadProgress DocumentReader::progress() const {
  auto done = bytes_done_;
  if (file_ && compressed_) {
    done += compressed_->position();
  } else if (file_ && !block_.text.empty()) {
    done += file_->size() - block_.text.size();
  }
  return {done, bytes_total_};
}

bool DocumentReader::open_next_file() {
  if (file_) bytes_done_ += file_->size();
  file_.reset();
  compressed_.reset();
  if (next_file_ == files_.size()) return false;
  const auto& path = files_[next_file_++];
  source_ = std::make_shared<const std::string>(path.string());
  file_ = std::make_shared<const MappedFile>(base::value_or_throw(MappedFile::open(path)));
  is_json_ = names_json_lines(path);
  whole_file_given_ = false;
  line_ = 0;
  unfinished_line_.clear();
  compressed_ = open_compressed(file_->bytes(), *source_);
  return true;
}

/// The next stretch of the current file, or of the next one; false when all is read.
bool DocumentReader::load_next_block() {
  for (;;) {
    if (file_ && compressed_ && is_json_ && load_compressed_lines(*compressed_)) return true;
    if (file_ && !whole_file_given_ && !(compressed_ && is_json_)) {
      whole_file_given_ = true;
      load_whole_text();
      if (!block_.text.empty()) return true;
    }
    if (!open_next_file()) return false;
  }
}

void DocumentReader::load_whole_text() {
  if (compressed_) {
    load_compressed_text(*compressed_);
  } else {
    const auto bytes = file_->bytes();
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    block_ = {file_, {begin, bytes.size()}, begin};
  }
  // JSON's parser leaves the mark out itself, as files that were joined have it in the middle.
  if (is_json_ || !block_.text.starts_with(base::byte_order_mark)) return;
  block_.text.remove_prefix(base::byte_order_mark.size());
  ++byte_order_marks_;
}

void DocumentReader::load_compressed_text(CompressedText& compressed) {
  auto text = std::make_shared<std::string>();
  while (compressed.append(*text, compressed_block_bytes)) {
    if (text->size() > most_compressed_text_bytes) {
      throw Error(ExitCode::checkpoint,
                  format("'{}' holds more than {} of text (it is decompressed in memory, to find "
                         "where documents end); split it, or store it as .jsonl.gz",
                         *source_, base::bytes_text(most_compressed_text_bytes)));
    }
  }
  base::success_or_throw(check_format(*text, *source_));
  block_ = {text, *text, text->data()};
}

bool DocumentReader::load_compressed_lines(CompressedText& compressed) {
  auto text = std::make_shared<std::string>(std::move(unfinished_line_));
  unfinished_line_.clear();
  std::size_t searched = 0;
  for (;;) {
    const bool more = compressed.append(*text, compressed_block_bytes);
    if (line_ == 0 && searched == 0) base::success_or_throw(check_format(*text, *source_));
    const auto end = std::string_view(*text).substr(searched).rfind('\n');
    if (end != std::string_view::npos) {
      unfinished_line_ = text->substr(searched + end + 1);
      text->resize(searched + end + 1);
      break;
    }
    if (!more) break;
    searched = text->size();
    if (searched > most_line_bytes) {
      throw Error(ExitCode::checkpoint,
                  format("'{}' line {} is longer than {} (no document is)", *source_, line_ + 1,
                         base::bytes_text(most_line_bytes)));
    }
  }
  block_ = {text, *text};
  return !block_.text.empty();
}

void DocumentReader::take_text(DocumentBatch& batch) {
  auto& text = block_.text;
  std::size_t size = 0;
  while (!text.empty() && size < batch_bytes) {
    auto end = text.size();
    auto next = text.size();
    if (separator_) {
      if (const auto match = separator_->find(text, 0)) {
        end = match->begin;
        next = match->end;
      }
    }
    const auto begins_at = static_cast<std::uint64_t>(text.data() - block_.file_begin);
    if (end > 0) batch.documents.push_back({text.substr(0, end), false, 0, true, begins_at});
    // Separators of documents reach no worker.
    base::success_or_throw(
        check_plain_text(text.substr(end, next - end), begins_at + end, *source_));
    text.remove_prefix(next);
    size += next;
  }
}

void DocumentReader::take_lines(DocumentBatch& batch) {
  auto& text = block_.text;
  std::size_t size = 0;
  while (!text.empty() && size < batch_bytes) {
    const auto end = std::min(text.find('\n'), text.size());
    ++line_;
    if (!is_blank(text.substr(0, end))) {
      batch.documents.push_back({text.substr(0, end), true, line_, true});
    }
    text.remove_prefix(std::min(end + 1, text.size()));
    size += end + 1;
  }
}

std::optional<DocumentBatch> DocumentReader::next() {
  for (;;) {
    if (block_.text.empty() && !load_next_block()) return std::nullopt;
    DocumentBatch batch{block_.owner, source_, {}};
    if (is_json_) {
      take_lines(batch);
    } else {
      take_text(batch);
    }
    if (!batch.documents.empty()) return batch;
  }
}

}  // namespace trireme::data
