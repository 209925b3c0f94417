// SPDX-License-Identifier: Apache-2.0
#include "data/documents/piece_reader.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

}  // namespace

std::optional<DocumentBatch> PieceReader::next() {
  if (ready_.empty()) {
    auto batch = reader_.next();
    if (!batch) return std::nullopt;
    cut(*batch);
  }
  auto batch = std::move(ready_.front());
  ready_.pop_front();
  return batch;
}

void PieceReader::cut(const DocumentBatch& batch) {
  const auto begin_batch = [&] { ready_.push_back({batch.owner, batch.source, {}}); };
  begin_batch();
  for (const auto& document : batch.documents) {
    if (document.is_json || document.text.size() < 2 * piece_bytes) {
      ready_.back().documents.push_back(document);
      continue;
    }
    for (const auto part : tokenizer_.cut(document.text, piece_bytes)) {
      const auto offset = static_cast<std::uint64_t>(part.data() - document.text.data());
      ready_.back().documents.push_back(
          {part, false, document.line, false, document.begins_at + offset});
      begin_batch();
    }
    // The last part, which stands in the batch before the empty one.
    std::prev(ready_.end(), 2)->documents.back().ends_document = true;
  }
  if (ready_.back().documents.empty()) ready_.pop_back();
}

}  // namespace trireme::data
