// SPDX-License-Identifier: Apache-2.0
#include "data/documents/gzip.hpp"

#include "trireme/base/format.hpp"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace trireme::data {
namespace {

/// 15: the largest window; 16 more: gzip's header and checksum.
constexpr int gzip_window_bits = 15 + 16;

}  // namespace

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

struct GzipReader::State {
  State(std::span<const std::byte> bytes, std::string name)
      : compressed(bytes), source(std::move(name)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  [[noreturn]] void fail(const std::string& what) const { fail_compressed(source, what, position); }

  std::span<const std::byte> compressed;
  std::string source;
  z_stream stream{};
  std::size_t position = 0;
  std::size_t produced = 0;
  bool inside_member = true;
};

GzipReader::GzipReader(std::span<const std::byte> compressed, std::string source)
    : state_(std::make_unique<State>(compressed, std::move(source))) {
  if (inflateInit2(&state_->stream, gzip_window_bits) != Z_OK) state_->fail("zlib cannot start");
}

GzipReader::~GzipReader() = default;

std::size_t GzipReader::position() const {
  return state_->position;
}

bool GzipReader::append(std::string& text, std::size_t most_bytes) {
  auto& state = *state_;
  const auto rest = state.compressed.subspan(state.position);
  if (!state.inside_member) {
    // Zeros after a member are padding; anything else must be another member.
    if (std::all_of(rest.begin(), rest.end(), [](std::byte b) { return b == std::byte{0}; })) {
      return false;
    }
    if (!is_gzip(rest) || inflateReset(&state.stream) != Z_OK) state.fail("no gzip member");
    state.inside_member = true;
  }
  constexpr std::size_t most_step = std::size_t{1} << 30;
  const auto before = text.size();
  text.resize(before + std::min(most_bytes, most_step));
  auto& stream = state.stream;
  const auto given = std::min(rest.size(), most_step);
  // zlib's pointer is not const, but it does not write through it.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(rest.data()));
  stream.avail_in = static_cast<uInt>(given);
  stream.next_out = reinterpret_cast<Bytef*>(text.data() + before);
  stream.avail_out = static_cast<uInt>(text.size() - before);
  const int result = inflate(&stream, Z_NO_FLUSH);
  text.resize(text.size() - stream.avail_out);
  state.position += given - stream.avail_in;
  state.produced += text.size() - before;
  if (result == Z_STREAM_END) {
    state.inside_member = false;
  } else if (result == Z_BUF_ERROR || (result == Z_OK && text.size() == before)) {
    state.fail("gzip ends in the middle");
  } else if (result != Z_OK) {
    state.fail(base::format("gzip is damaged ({})", stream.msg == nullptr ? "?" : stream.msg));
  }
  check_expansion("gzip", state.source, state.produced, state.position);
  return true;
}

}  // namespace trireme::data
