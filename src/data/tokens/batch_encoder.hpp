// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/prepare.hpp"

#include "data/documents/piece_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::data {

/// Result of one thread for a batch: the pieces' tokens, one after the other.
struct EncodedPiece {
  std::size_t tokens = 0;
  std::size_t text_bytes = 0;
  std::uint64_t hash = 0;  ///< of the piece's text
  bool ends_document = true;
  bool repaired = false;
  bool has_special_tokens = false;
};
struct EncodedBatch {
  std::vector<std::int32_t> ids;
  std::vector<EncodedPiece> pieces;
  std::vector<std::string> skipped;  ///< what is wrong with each line that was left out
};

/// Encoder of one thread.
class BatchEncoder {
 public:
  BatchEncoder(const Tokenizer& tokenizer, const DocumentSources& sources)
      : encoder_(tokenizer), texts_(sources.text_field, sources.bad_lines) {}

  EncodedBatch operator()(const DocumentBatch& batch) {
    EncodedBatch encoded;
    for (const auto& document : batch.documents) {
      const auto text = texts_.of(batch, document);
      if (const auto& skipped = texts_.skipped()) encoded.skipped.push_back(*skipped);
      const auto ids_before = encoded.ids.size();
      const auto repaired_before = encoder_.repaired_texts();
      const auto special_before = encoder_.special_tokens();
      encoder_.encode(text, encoded.ids);
      encoded.pieces.push_back(
          {encoded.ids.size() - ids_before, text.size(), document_hash(text),
           document.ends_document,
           texts_.is_repaired() || encoder_.repaired_texts() != repaired_before,
           encoder_.special_tokens() != special_before});
    }
    return encoded;
  }

 private:
  Tokenizer::Encoder encoder_;
  DocumentTexts texts_;
};

}  // namespace trireme::data
