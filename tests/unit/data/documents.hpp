// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/documents/document_reader.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace trireme::data {

inline std::vector<std::string> texts_of(const DocumentSources& sources) {
  auto reader = DocumentReader::open(sources).value();
  std::vector<std::string> found;
  DocumentTexts texts(sources.text_field, sources.bad_lines);
  while (const auto batch = reader.next()) {
    for (const auto& document : batch->documents) {
      found.emplace_back(texts.of(*batch, document));
    }
  }
  CHECK(reader.progress().bytes_read == reader.progress().bytes_total);
  return found;
}

/// Documents of many sizes; the last is large enough to be cut for several threads.
inline std::string many_documents(std::size_t large_bytes) {
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += "Document " + std::to_string(i) + " tells\n";
    for (int line = 0; line < i % 17; ++line) text += "  of line " + std::to_string(line) + ".\n";
    text += "\n";
  }
  for (long i = 0; text.size() < large_bytes; ++i) text += "Line " + std::to_string(i * i) + ".\n";
  return text;
}

}  // namespace trireme::data
