// SPDX-License-Identifier: Apache-2.0
#include "data/documents/zstd.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/handle.hpp"

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

}  // namespace

bool is_zstd(std::span<const std::byte> bytes) {
  std::uint32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == ZSTD_MAGICNUMBER ||
         (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

struct ZstdReader::State {
  std::span<const std::byte> compressed;
  std::string source;
  base::UniqueHandle<StreamTraits> stream;
  std::size_t position = 0;
  std::size_t produced = 0;
  bool inside_frame = false;
};

ZstdReader::ZstdReader(std::span<const std::byte> compressed, std::string source)
    : state_(new State{compressed, std::move(source), {}}) {
  state_->stream = base::UniqueHandle<StreamTraits>::adopt(ZSTD_createDCtx());
  const auto set =
      ZSTD_DCtx_setParameter(state_->stream.get(), ZSTD_d_windowLogMax, most_window_bits);
  if (ZSTD_isError(set) != 0) fail_compressed(state_->source, "zstd cannot start", 0);
}

ZstdReader::~ZstdReader() = default;

std::size_t ZstdReader::position() const {
  return state_->position;
}

bool ZstdReader::append(std::string& text, std::size_t most_bytes) {
  auto& state = *state_;
  const auto rest = state.compressed.subspan(state.position);
  if (!state.inside_frame && rest.empty()) return false;
  const auto before = text.size();
  text.resize(before + most_bytes);
  ZSTD_inBuffer in{rest.data(), rest.size(), 0};
  ZSTD_outBuffer out{text.data() + before, most_bytes, 0};
  const auto result = ZSTD_decompressStream(state.stream.get(), &out, &in);
  text.resize(before + out.pos);
  state.position += in.pos;
  state.produced += out.pos;
  if (ZSTD_isError(result) != 0) {
    fail_compressed(state.source, base::format("zstd is damaged ({})", ZSTD_getErrorName(result)),
                    state.position);
  }
  state.inside_frame = result != 0;
  if (state.inside_frame && in.pos == in.size && out.pos == 0) {
    fail_compressed(state.source, "zstd ends in the middle", state.position);
  }
  check_expansion("zstd", state.source, state.produced, state.position);
  return true;
}

}  // namespace trireme::data
