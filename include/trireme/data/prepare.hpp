// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/documents.hpp"
#include "trireme/data/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trireme::data {

struct PrepareOptions {
  std::filesystem::path out;  ///< prefix
  /// Share of documents that go to PREFIX.validation; which ones depends on their text alone.
  double validation_fraction = 0.0;
  /// The token that ends every document; the tokenizer's own end of text when empty.
  std::string end_of_text = {};
  int threads = 1;
};

/// Contents of one token file, stored beside it as PREFIX.json.
struct TokenFileFacts {
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  /// Bytes of text, without ends of text: loss per token becomes bits per byte with it.
  std::int64_t text_bytes = 0;
  std::int32_t vocab_size = 0;
  std::int32_t end_of_text = 0;
};

struct PrepareReport {
  TokenFileFacts train;
  std::optional<TokenFileFacts> validation;
  /// Documents that held bytes that are not UTF-8; they were read as U+FFFD.
  std::int64_t repaired_documents = 0;
};

/// Text to tokens: PREFIX.bin/.idx/.json and, with a validation fraction, PREFIX.validation.*.
/// Every document ends with the end-of-text token. The files do not depend on the number of
/// threads, and appear only when they are complete.
base::Result<PrepareReport> prepare(const DocumentSources& sources, const Tokenizer& tokenizer,
                                    const PrepareOptions& options,
                                    const ReadProgressCallback& progress = {});

/// The facts beside a token file; nothing when it was not prepared here.
base::Result<std::optional<TokenFileFacts>> read_facts(const std::filesystem::path& prefix);

}  // namespace trireme::data
