// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX-512: includes nothing whose inline functions other files share.
#include <immintrin.h>

#include <cstddef>

namespace trireme::comm::avx512 {

void stream_lines(std::byte* to, const std::byte* from, std::size_t count) {
  std::size_t at = 0;
  for (; at + 256 <= count; at += 256) {
    const __m512i a = _mm512_loadu_si512(from + at);
    const __m512i b = _mm512_loadu_si512(from + at + 64);
    const __m512i c = _mm512_loadu_si512(from + at + 128);
    const __m512i d = _mm512_loadu_si512(from + at + 192);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), a);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 64), b);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 128), c);
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at + 192), d);
  }
  for (; at < count; at += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + at), _mm512_loadu_si512(from + at));
  }
  // Fence: these stores are ordered with no others.
  _mm_sfence();
}

}  // namespace trireme::comm::avx512
