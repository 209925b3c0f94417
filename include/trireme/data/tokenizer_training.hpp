// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/documents.hpp"
#include "trireme/data/tokenizer.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::data {

/// Division of text into words before merging, as in three families of models.
enum class PreTokenizerKind {
  gpt2,
  llama3,  ///< digits in groups of three; case-insensitive contractions
  qwen2,   ///< as llama3, with single digits and Unicode normalisation NFC
};

struct TrainingOptions {
  /// Ids in all: special tokens, 256 bytes and merges.
  std::int32_t vocab_size = 0;
  PreTokenizerKind pre_tokenizer = PreTokenizerKind::llama3;
  /// Special tokens; they get the first ids, and their text is not used for merges.
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
  /// Pairs that are rarer are not merged.
  std::int64_t min_frequency = 2;
  int threads = 1;
};

struct TrainingReport {
  std::uint64_t text_bytes = 0;
  std::uint64_t documents = 0;
  std::uint64_t distinct_words = 0;
  double counting_seconds = 0;
  double merging_seconds = 0;
  ReadNotes notes;
};

struct TrainedTokenizer {
  Tokenizer tokenizer;
  TrainingReport report;
};

/// Trains a byte-level byte-pair encoding (Sennrich, Haddow and Birch, ACL 2016): repeatedly the
/// most frequent pair of neighbours becomes a token. Of equally frequent pairs the one with the
/// lower ids comes first, so the result depends only on the text, not on threads or order, and
/// equals that of Hugging Face's trainer. When pairs run out the vocabulary stays smaller. Input
/// without any text is a failure.
base::Result<TrainedTokenizer> train_tokenizer(const DocumentSources& sources,
                                               const TrainingOptions& options,
                                               const ReadProgressCallback& progress = {});

}  // namespace trireme::data
