// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/streaming_copy.hpp"

#include "comm/core/ordered_sum.hpp"
#include "comm/core/tensor_checks.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>

namespace trireme::comm {
namespace {

constexpr std::size_t line = 64;
/// Size below which a transfer through memory takes longer than moving modified lines.
constexpr std::size_t shortest = std::size_t{4} << 10;

/// Copy with SSE2 stores, which every x86-64 processor has.
void stream_lines(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t at = 0; at < count; at += line) {
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* place = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source);
    const __m128i b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2);
    const __m128i d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(place, a);
    _mm_stream_si128(place + 1, b);
    _mm_stream_si128(place + 2, c);
    _mm_stream_si128(place + 3, d);
  }
  // Fence: these stores are ordered with no others.
  _mm_sfence();
}

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
    const auto into_line = reinterpret_cast<std::uintptr_t>(to) % line;
    const auto head = into_line == 0 ? 0 : line - into_line;
    const auto body = (count - head) / line * line;
    copy_bytes(to, from, head);
    if (best_instructions() == Instructions::avx512) {
      avx512::stream_lines(to + head, from + head, body);
    } else {
      stream_lines(to + head, from + head, body);
    }
    copy_bytes(to + head + body, from + head + body, count - head - body);
    return;
  }
  copy_bytes(to, from, count);
}

}  // namespace trireme::comm
