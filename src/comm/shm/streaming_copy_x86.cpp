// SPDX-License-Identifier: Apache-2.0
#include "comm/core/ordered_sum.hpp"
#include "comm/shm/streaming_copy.hpp"

#include <emmintrin.h>

namespace trireme::comm {
namespace {

/// Copy with SSE2 stores, which every x86-64 processor has.
void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t count) {
  for (std::size_t at = 0; at < count; at += cache_line) {
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

void stream_lines(std::byte* to, const std::byte* from, std::size_t count) {
  if (best_instructions() == Instructions::avx512) {
    avx512::stream_lines(to, from, count);
  } else {
    stream_lines_sse2(to, from, count);
  }
}

}  // namespace trireme::comm
