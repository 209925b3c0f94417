// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/tokenizer.hpp"

#include "data/documents/document_reader.hpp"

#include <deque>
#include <optional>

namespace trireme::data {

/// Documents in batches of about a mebibyte, large ones in parts that encode to the ids of the
/// whole, so that several threads share even a single file. The cuts do not depend on threads.
class PieceReader {
 public:
  PieceReader(DocumentReader reader, Tokenizer tokenizer)
      : reader_(std::move(reader)), tokenizer_(std::move(tokenizer)) {}

  std::optional<DocumentBatch> next();
  ReadProgress progress() const { return reader_.progress(); }
  std::int64_t byte_order_marks() const { return reader_.byte_order_marks(); }

 private:
  void cut(const DocumentBatch& batch);

  DocumentReader reader_;
  Tokenizer tokenizer_;
  std::deque<DocumentBatch> ready_;
};

}  // namespace trireme::data
