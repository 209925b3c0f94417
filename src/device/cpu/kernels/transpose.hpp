// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/dtype.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>

namespace trireme::device::cpu {

/// Squares of as many elements as a register of every x86-64 has.
template <typename T>
constexpr std::int64_t transposed_side = 16 / static_cast<std::int64_t>(sizeof(T));

/// y = transpose(x) of a square of four floats.
inline void transpose_square(const float* x, std::int64_t x_stride, float* y,
                             std::int64_t y_stride) {
  __m128 a = _mm_loadu_ps(x);
  __m128 b = _mm_loadu_ps(x + x_stride);
  __m128 c = _mm_loadu_ps(x + 2 * x_stride);
  __m128 d = _mm_loadu_ps(x + 3 * x_stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(y, a);
  _mm_storeu_ps(y + y_stride, b);
  _mm_storeu_ps(y + 2 * y_stride, c);
  _mm_storeu_ps(y + 3 * y_stride, d);
}

/// Transposition of eight bf16: three rounds, each of which interleaves rows that lie half of them
/// apart.
inline void transpose_square(const Bf16* x, std::int64_t x_stride, Bf16* y, std::int64_t y_stride) {
  // Each round reads one of the two and writes the other.
  __m128i rows[2][8];
  for (int i = 0; i < 8; ++i) {
    rows[0][i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i * x_stride));
  }
  for (int round = 0; round < 3; ++round) {
    const auto& from = rows[round % 2];
    auto& to = rows[(round + 1) % 2];
    for (int i = 0; i < 4; ++i) {
      to[2 * i] = _mm_unpacklo_epi16(from[i], from[i + 4]);
      to[2 * i + 1] = _mm_unpackhi_epi16(from[i], from[i + 4]);
    }
  }
  for (int i = 0; i < 8; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i * y_stride), rows[1][i]);
  }
}

/// y = transpose(x) of x [rows, columns]; lines of the cache are written whole.
template <typename T>
void transpose(const T* x, std::int64_t x_stride, std::int64_t rows, std::int64_t columns, T* y,
               std::int64_t y_stride) {
  constexpr auto side = transposed_side<T>;
  constexpr auto line = 4 * side;
  const auto whole_rows = rows / side * side;
  const auto whole_columns = columns / side * side;
  for (std::int64_t first = 0; first < whole_columns; first += line) {
    const auto last = std::min(whole_columns, first + line);
    for (std::int64_t r = 0; r < whole_rows; r += side) {
      for (auto c = first; c < last; c += side) {
        transpose_square(x + r * x_stride + c, x_stride, y + c * y_stride + r, y_stride);
      }
    }
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    for (auto c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      y[c * y_stride + r] = x[r * x_stride + c];
    }
  }
}

}  // namespace trireme::device::cpu
