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
    "compressions, NUL bytes) is refused; tables (.csv) are read as plain text.";

/// --input and --text-field.
void add_text_options(CLI::App& app, data::DocumentSources& sources);
/// Option --threads; the default is the machine's number.
void add_threads_option(CLI::App& app, int& threads);

}  // namespace trireme::apps
