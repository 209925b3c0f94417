// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "data/documents/compressed.hpp"

#include <zlib.h>

#include <algorithm>

namespace trireme::data {
namespace {

/// 15: the largest window; 16 more: gzip's header and checksum.
constexpr int gzip_window_bits = 15 + 16;

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

class GzipReader final : public CompressedText {
 public:
  GzipReader(std::span<const std::byte> compressed, const std::string& source)
      : compressed_(compressed), source_(source) {
    if (inflateInit2(&stream_, gzip_window_bits) != Z_OK) fail("zlib cannot start");
  }
  ~GzipReader() override { inflateEnd(&stream_); }

  bool append(std::string& text, std::size_t most_bytes) override;
  std::size_t position() const override { return position_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    fail_compressed(source_, what, position_);
  }

  std::span<const std::byte> compressed_;
  std::string source_;
  z_stream stream_{};
  std::size_t position_ = 0;
  std::size_t produced_ = 0;
  bool inside_member_ = true;
};

bool GzipReader::append(std::string& text, std::size_t most_bytes) {
  const auto rest = compressed_.subspan(position_);
  if (!inside_member_) {
    // Zeros after a member are padding; anything else must be another member.
    if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) {
      return false;
    }
    if (!is_gzip(rest) || inflateReset(&stream_) != Z_OK) fail("no gzip member");
    inside_member_ = true;
  }
  constexpr std::size_t most_step = std::size_t{1} << 30;
  const auto before = text.size();
  text.resize(before + std::min(most_bytes, most_step));
  const auto given = std::min(rest.size(), most_step);
  // zlib's pointer is not const, but it does not write through it.
  stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(rest.data()));
  stream_.avail_in = static_cast<uInt>(given);
  stream_.next_out = reinterpret_cast<Bytef*>(text.data() + before);
  stream_.avail_out = static_cast<uInt>(text.size() - before);
  const int result = inflate(&stream_, Z_NO_FLUSH);
  text.resize(text.size() - stream_.avail_out);
  position_ += given - stream_.avail_in;
  produced_ += text.size() - before;
  if (result == Z_STREAM_END) {
    inside_member_ = false;
  } else if (result == Z_BUF_ERROR || (result == Z_OK && text.size() == before)) {
    fail("gzip ends in the middle");
  } else if (result != Z_OK) {
    fail(base::format("gzip is damaged ({})", stream_.msg == nullptr ? "?" : stream_.msg));
  }
  check_expansion("gzip", source_, produced_, position_);
  return true;
}

}  // namespace

std::unique_ptr<CompressedText> open_gzip(std::span<const std::byte> bytes,
                                          const std::string& source) {
  return is_gzip(bytes) ? std::make_unique<GzipReader>(bytes, source) : nullptr;
}

}  // namespace trireme::data
