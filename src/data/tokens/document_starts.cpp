// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include <algorithm>

namespace trireme::data {
namespace {

/// Number of the last document that begins at or before a token; 0 where none does.
std::int64_t document_of(const IndexedTokens& tokens, std::int64_t token) {
  std::int64_t found = 0;
  std::int64_t behind = tokens.document_count();
  while (behind - found > 1) {
    const auto middle = found + (behind - found) / 2;
    (tokens.document(middle).begin <= token ? found : behind) = middle;
  }
  return found;
}

[[noreturn]] void throw_contradiction(const IndexedTokens& tokens, std::int64_t document) {
  auto index = tokens.path();
  index.replace_extension(".idx");
  const auto range = tokens.document(document);
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("'{}': document {} is tokens [{}, {}), expected one that follows "
                                 "the document before it (the file is damaged); prepare or copy it "
                                 "again",
                                 index.string(), document, range.begin, range.end));
}

}  // namespace

void IndexedTokens::document_starts(std::int64_t begin, std::span<std::int32_t> starts) const {
  const auto count = static_cast<std::int64_t>(starts.size());
  TRIREME_EXPECT(begin >= 0 && begin <= token_count() - count, "tokens within the stream");
  if (document_count() == 0) {
    std::fill(starts.begin(), starts.end(), 0);
    return;
  }
  // An index that was not read as a whole may hold anything.
  auto document = document_of(*this, begin);
  auto range = this->document(document);
  if (range.begin < 0 || begin < range.begin) throw_contradiction(*this, document);
  std::int64_t start = 0;
  for (std::int64_t at = 0; at < count; ++at) {
    while (begin + at == range.end && document + 1 < document_count()) {
      const auto next = this->document(++document);
      if (next.begin != range.end || next.end < next.begin) throw_contradiction(*this, document);
      range = next;
      start = at;
    }
    if (begin + at >= range.end) throw_contradiction(*this, document);
    starts[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(start);
  }
}

}  // namespace trireme::data
