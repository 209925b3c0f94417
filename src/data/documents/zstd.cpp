// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/handle.hpp"

#include "data/documents/compressed.hpp"

#include <zstd.h>

#include <cstdint>
#include <cstring>

namespace trireme::data {
namespace {

/// The largest window that zstd --long makes.
constexpr int most_window_bits = 31;

struct StreamTraits {
  using raw_type = ZSTD_DCtx*;
  static ZSTD_DCtx* null() { return nullptr; }
  static const char* name() { return "zstd decompressor"; }
  static std::optional<std::string> close(ZSTD_DCtx* stream) {
    const auto result = ZSTD_freeDCtx(stream);
    if (ZSTD_isError(result) == 0) return std::nullopt;
    return ZSTD_getErrorName(result);
  }
};

bool is_zstd(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER ||
         (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

class ZstdReader final : public CompressedText {
 public:
  ZstdReader(std::span<const std::byte> compressed, const std::string& source)
      : compressed_(compressed),
        source_(source),
        stream_(base::UniqueHandle<StreamTraits>::adopt(ZSTD_createDCtx())) {
    const auto set = ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, most_window_bits);
    if (ZSTD_isError(set) != 0) fail_compressed(source_, "zstd cannot start", 0);
  }

  bool append(std::string& text, std::size_t most_bytes) override;
  std::size_t position() const override { return position_; }

 private:
  std::span<const std::byte> compressed_;
  std::string source_;
  base::UniqueHandle<StreamTraits> stream_;
  std::size_t position_ = 0;
  std::size_t produced_ = 0;
  bool inside_frame_ = false;
};

bool ZstdReader::append(std::string& text, std::size_t most_bytes) {
  const auto rest = compressed_.subspan(position_);
  if (!inside_frame_ && rest.empty()) return false;
  const auto before = text.size();
  text.resize(before + most_bytes);
  ZSTD_inBuffer in{rest.data(), rest.size(), 0};
  ZSTD_outBuffer out{text.data() + before, most_bytes, 0};
  const auto result = ZSTD_decompressStream(stream_.get(), &out, &in);
  text.resize(before + out.pos);
  position_ += in.pos;
  produced_ += out.pos;
  if (ZSTD_isError(result) != 0) {
    fail_compressed(source_, base::format("zstd is damaged ({})", ZSTD_getErrorName(result)),
                    position_);
  }
  inside_frame_ = result != 0;
  if (inside_frame_ && in.pos == in.size && out.pos == 0) {
    fail_compressed(source_, "zstd ends in the middle", position_);
  }
  check_expansion("zstd", source_, produced_, position_);
  return true;
}

}  // namespace

std::unique_ptr<CompressedText> open_zstd(std::span<const std::byte> bytes,
                                          const std::string& source) {
  return is_zstd(bytes) ? std::make_unique<ZstdReader>(bytes, source) : nullptr;
}

}  // namespace trireme::data
