// SPDX-License-Identifier: Apache-2.0
#include "data/documents/compressed.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

namespace trireme::data {
namespace {

constexpr std::size_t most_ratio = 400;
constexpr std::size_t free_bytes = std::size_t{64} << 20;

}  // namespace

std::unique_ptr<CompressedText> open_compressed(std::span<const std::byte> bytes,
                                                const std::string& source) {
  auto text = open_gzip(bytes, source);
  return text ? std::move(text) : open_zstd(bytes, source);
}

void check_expansion(const char* format, const std::string& source, std::size_t text_bytes,
                     std::size_t compressed_bytes) {
  if (text_bytes > free_bytes && text_bytes / most_ratio > compressed_bytes) {
    fail_compressed(
        source, base::format("{} expands more than {} times (it is no text)", format, most_ratio),
        compressed_bytes);
  }
}

void fail_compressed(const std::string& source, const std::string& what, std::size_t position) {
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("'{}': {} at compressed byte {} (the text after it is lost); "
                                 "compress or copy it again",
                                 source, what, position));
}

}  // namespace trireme::data
