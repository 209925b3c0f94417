// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace trireme::data {

/// Text that comes out of compressed bytes in memory. Failures (base::Error, exit code 6) name the
/// source: damage, an end in the middle, and text so much larger than the file that it is an attack
/// rather than text.
class CompressedText {
 public:
  virtual ~CompressedText() = default;
  CompressedText(const CompressedText&) = delete;
  CompressedText& operator=(const CompressedText&) = delete;

  /// Appends at most `most_bytes` of text; false when nothing is left.
  virtual bool append(std::string& text, std::size_t most_bytes) = 0;
  /// Compressed bytes that have been read.
  virtual std::size_t position() const = 0;

 protected:
  CompressedText() = default;
};

/// Decompressed text of gzip or zstd, recognized by the first bytes; null for others. `bytes`
/// outlive it.
std::unique_ptr<CompressedText> open_compressed(std::span<const std::byte> bytes,
                                                const std::string& source);
/// One format alone: gzip, one member after the other, or zstd, one frame after the other.
std::unique_ptr<CompressedText> open_gzip(std::span<const std::byte> bytes,
                                          const std::string& source);
std::unique_ptr<CompressedText> open_zstd(std::span<const std::byte> bytes,
                                          const std::string& source);

/// Throws once the text is 400 times as large as its source, beyond the first 64 MiB.
void check_expansion(const char* format, const std::string& source, std::size_t text_bytes,
                     std::size_t compressed_bytes);
/// Throws a failure that describes the damage of the compressed bytes at this place.
[[noreturn]] void fail_compressed(const std::string& source, const std::string& what,
                                  std::size_t position);

}  // namespace trireme::data
