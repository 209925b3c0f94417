// SPDX-License-Identifier: Apache-2.0
// Compiled for AMX, as CMakeLists.txt says.
#include "device/cpu/peak/peak.hpp"

#include <immintrin.h>

namespace trireme::device::cpu {
namespace {

/// The operand of LDTILECFG (Intel 64 manual, volume 1, chapter 18): eight tiles of 16 rows of 64
/// bytes.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

}  // namespace

std::int64_t tile_rounds_amx(std::int64_t rounds) {
  constexpr std::int64_t products = 4;
  constexpr std::int64_t operations = 2 * 16 * 16 * 32;
  // In static memory: g++ 12's intrinsic says that it reads 8 of the 64 bytes, and stores to the
  // others on the stack are left out.
  static constexpr TileConfiguration configuration;
  _tile_loadconfig(&configuration);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::int64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return rounds * products * operations;
}

}  // namespace trireme::device::cpu
