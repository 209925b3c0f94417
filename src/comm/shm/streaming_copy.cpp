// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/streaming_copy.hpp"

#include "comm/core/tensor_checks.hpp"

#include <cstdint>

namespace trireme::comm {
namespace {

/// Size below which a transfer through memory takes longer than moving modified lines.
constexpr std::size_t shortest = std::size_t{4} << 10;

}  // namespace

void store_bytes(Storing how, std::byte* to, const std::byte* from, std::size_t count) {
  if (how == Storing::streaming) {
    stream_bytes(to, from, count);
  } else {
    copy_bytes(to, from, count);
  }
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t count) {
  if (count >= shortest) {
    const auto into_line = reinterpret_cast<std::uintptr_t>(to) % cache_line;
    const auto head = into_line == 0 ? 0 : cache_line - into_line;
    const auto body = (count - head) / cache_line * cache_line;
    copy_bytes(to, from, head);
    stream_lines(to + head, from + head, body);
    copy_bytes(to + head + body, from + head + body, count - head - body);
    return;
  }
  copy_bytes(to, from, count);
}

}  // namespace trireme::comm
