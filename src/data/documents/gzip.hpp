// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/documents/compressed.hpp"

namespace trireme::data {

/// True when the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes);

/// Decompresses gzip held in memory, one member after the other.
class GzipReader final : public CompressedText {
 public:
  GzipReader(std::span<const std::byte> compressed, std::string source);
  ~GzipReader() override;

  bool append(std::string& text, std::size_t most_bytes) override;
  std::size_t position() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
