// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/documents.hpp"

#include <CLI/CLI.hpp>

#include <string_view>

namespace trireme::apps {

/// Paragraph of help on the inputs of --input.
inline constexpr std::string_view input_formats =
    "Inputs: text files (each one document), JSON lines (.jsonl, .ndjson or .json, one document a "
    "line), folders of these (all files in and below, in order of their names, without hidden "
    "ones), all of them also compressed with gzip or zstd. What is no text (Parquet, Arrow, other "
    "compressions, NUL bytes) is refused; tables (.csv) are read as plain text. Bytes that are not "
    "UTF-8, and halves of surrogate pairs in JSON, are read as U+FFFD and counted; a byte order "
    "mark before a text is left out.";

/// --input, --text-field and --skip-bad-lines.
void add_text_options(CLI::App& app, data::DocumentSources& sources);
/// Warns of what reading changed or left out.
void say_notes(std::string_view room, const data::ReadNotes& notes);
/// Option --threads; the default is the machine's number.
void add_threads_option(CLI::App& app, int& threads);

}  // namespace trireme::apps
