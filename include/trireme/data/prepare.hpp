// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/data/documents.hpp"
#include "trireme/data/tokenizer.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::data {

struct PrepareOptions {
  std::filesystem::path out;  ///< prefix
  /// Share of documents that go to PREFIX.validation; which ones depends on their text alone.
  double validation_fraction = 0.0;
  /// The token that ends every document; the tokenizer's own end of text when empty.
  std::string end_of_text = {};
  /// Tokens that the tokenizer puts around a text (a begin-of-text token, say): as prompts have
  /// them.
  Template around = Template::apply;
  /// Spellings of special tokens in a text, such as <|endoftext|>: the tokens, as Hugging Face
  /// reads them, or plain text.
  SpecialSpellings special_spellings = SpecialSpellings::tokens;
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
  /// Ids that every document begins with. (Files of before these were recorded have none.)
  std::vector<std::int32_t> begin_of_text = {};
};

struct PrepareReport {
  TokenFileFacts train;
  std::optional<TokenFileFacts> validation;
  ReadNotes notes;
  /// Documents in whose text special tokens were found.
  std::int64_t documents_with_special_tokens = 0;
};

/// Text to tokens: PREFIX.bin/.idx/.json and, with a validation fraction, PREFIX.validation.*.
/// Every document begins and ends with what the tokenizer puts around a text, and ends with the
/// end-of-text token, once. The files do not depend on the number of
/// threads, and appear only when they are complete.
base::Result<PrepareReport> prepare(const DocumentSources& sources, const Tokenizer& tokenizer,
                                    const PrepareOptions& options,
                                    const ReadProgressCallback& progress = {});

/// The facts beside a token file; nothing when it was not prepared here.
base::Result<std::optional<TokenFileFacts>> read_facts(const std::filesystem::path& prefix);

/// How documents of token files and prompts of the tokenizer begin differently, as a sentence for a
/// warning; nothing where all begin alike. Files that were not prepared here are passed over.
std::optional<std::string> difference_in_begin(std::span<const std::filesystem::path> token_files,
                                               const Tokenizer& tokenizer);

}  // namespace trireme::data
