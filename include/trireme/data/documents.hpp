// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace trireme::data {

/// Treatment of a line of a JSON lines file that is no document: not JSON, no object, or without
/// the text.
enum class BadLines { refuse, skip };

/// Files to read, and their division into documents.
///
/// A path is a file or a folder; a folder stands for all files in it and below, ascending by name,
/// without hidden ones. Files that begin with gzip's or zstd's magic number are decompressed. Files
/// named .jsonl, .ndjson or .json (before .gz or .zst) hold one JSON object a line, each a
/// document; every other file is one document, unless there is a separator. Documents without text
/// are left out; files that are not text are refused.
///
/// Ill-formed UTF-8 is read as U+FFFD, and so is a half of a surrogate pair in JSON. JSON may hold
/// NaN and Infinity, as Python writes them. A byte order mark at the begin of a file is no part of
/// its text.
struct DocumentSources {
  std::vector<std::string> paths;
  /// Cuts text files into documents: "blank-line", or a regular expression (PCRE2, multi-line)
  /// whose matches are left out; empty for one document a file.
  std::string separator = {};
  /// The member of a JSON object that holds the text.
  std::string text_field = "text";
  BadLines bad_lines = BadLines::refuse;
};

/// Oddities that reading came across; none of them is silent.
struct ReadNotes {
  /// Documents with ill-formed UTF-8 or halves of surrogate pairs, which were read as U+FFFD.
  std::int64_t repaired_documents = 0;
  /// Lines that BadLines::skip left out, and what is wrong with the first.
  std::int64_t skipped_lines = 0;
  std::string first_skipped = {};
  /// Files of plain text that began with a byte order mark, which was left out.
  std::int64_t byte_order_marks = 0;
};

/// Progress of reading documents, in bytes as stored on the disk.
struct ReadProgress {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_total = 0;
};
/// Callback, called repeatedly, from any thread but never from two at once.
using ReadProgressCallback = std::function<void(const ReadProgress&)>;

}  // namespace trireme::data
