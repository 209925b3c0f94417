// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/documents/compressed.hpp"

namespace trireme::data {

/// True when the bytes begin as a zstd file does: with a frame, or one to be skipped.
bool is_zstd(std::span<const std::byte> bytes);

/// Decompresses zstd held in memory, one frame after the other.
class ZstdReader final : public CompressedText {
 public:
  ZstdReader(std::span<const std::byte> compressed, std::string source);
  ~ZstdReader() override;

  bool append(std::string& text, std::size_t most_bytes) override;
  std::size_t position() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
