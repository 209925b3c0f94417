#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace trireme::data {

/// True when the bytes begin as a gzip file does.
bool is_gzip(std::span<const std::byte> bytes);

/// Decompresses gzip held in memory, one member after the other. Failures (base::Error, exit code
/// 6) name `source`: damage, an end in the middle, and text so much larger than the file (400
/// times, beyond the first 64 MiB) that it is an attack rather than text.
class GzipReader {
 public:
  GzipReader(std::span<const std::byte> compressed, std::string source);
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;
  GzipReader(GzipReader&&) noexcept;
  GzipReader& operator=(GzipReader&&) noexcept;
  ~GzipReader();

  /// Appends at most `most_bytes` of text; false when nothing is left.
  bool append(std::string& text, std::size_t most_bytes);
  /// Compressed bytes that have been read.
  std::size_t position() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
