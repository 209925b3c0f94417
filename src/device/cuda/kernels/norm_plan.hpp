// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/kernels/launch.hpp"

#include <cstdint>
#include <type_traits>

/// Division of the rows of a norm among threads.
namespace trireme::device::cuda {

/// A row that its threads keep in registers, `packs` accesses each, so that every operand is read
/// once: by `lanes` neighbours of a warp, or by a whole block (0).
struct HeldRows {
  int lanes = 0;
  int packs = 0;
  int threads = 0;

  bool possible() const { return packs > 0; }
  /// Rows that a block works on at once.
  std::int64_t at_once() const { return lanes == 0 ? 1 : threads / lanes; }
};

/// Plan for rows of `width` elements in packs of N: up to 8192. With N = 1 only what odd sizes
/// need, up to 2048: wider rows that no pack divides are rare, and are read more than once.
template <int N>
HeldRows hold_rows(std::int64_t width) {
  constexpr int team_threads = 256;
  const auto packs = ceil_div(width, N);
  const auto whole_warps = [](std::int64_t threads) {
    return static_cast<int>(ceil_div(threads, simt::warp_size) * simt::warp_size);
  };
  if (packs <= 128) {
    if (N == 1 || packs > 64) return {32, 4, team_threads};
    if (packs <= 8) return {8, 1, team_threads};
    if (packs <= 16) return {16, 1, team_threads};
    return {32, packs <= 32 ? 1 : 2, team_threads};
  }
  if (N > 1 && packs <= 256) return {0, 1, whole_warps(packs)};
  if (N > 1 && packs <= 1024) return {0, 2, whole_warps(ceil_div(packs, 2))};
  if (N <= 4 && packs <= 2048) return {0, 4, whole_warps(ceil_div(packs, 4))};
  return {};
}

/// The most threads of a block that holds so many packs of a row, for __launch_bounds__.
constexpr int most_threads(int lanes, int packs) {
  return lanes > 0 || packs == 1 ? 256 : 512;
}

/// Blocks of a multiprocessor that leave each thread the registers that it needs.
constexpr int least_blocks(int packs) {
  return packs == 1 ? 3 : 1;
}

/// body(lanes, packs), both as types, for every plan that hold_rows<N> makes.
template <int N, typename Body>
void with_held_rows(const HeldRows& plan, const Body& body) {
  const auto call = [&]<int lanes, int packs>() {
    if (plan.lanes != lanes || plan.packs != packs) return;
    body(std::integral_constant<int, lanes>(), std::integral_constant<int, packs>());
  };
  if constexpr (N > 1) {
    call.template operator()<8, 1>();
    call.template operator()<16, 1>();
    call.template operator()<32, 1>();
    call.template operator()<32, 2>();
    call.template operator()<0, 1>();
    call.template operator()<0, 2>();
  }
  call.template operator()<32, 4>();
  if constexpr (N <= 4) call.template operator()<0, 4>();
}

/// Plan for rows that are too narrow or too wide to hold: a row of few packs is a warp's, a longer
/// one a block's.
struct StreamedRows {
  Grid grid;
  bool packed = false;
  bool narrow = false;
  bool whole_block = false;
};

/// Gradients of rows narrower than this are small differences: they are computed in double.
constexpr std::int64_t narrow_width = 32;

template <typename L>
StreamedRows stream_rows(const L& launcher, const Elements& elements, std::int64_t pack) {
  constexpr std::int64_t widest_for_a_warp = 1024;
  StreamedRows plan;
  plan.narrow = elements.width < narrow_width;
  plan.packed = elements.packed && elements.width % pack == 0 && !plan.narrow;
  plan.whole_block = elements.width > widest_for_a_warp;
  constexpr int block_threads = 256;
  constexpr int warp_threads = 128;
  plan.grid = plan.whole_block
                  ? grid_for(launcher, elements.rows, 1, block_threads)
                  : grid_for(launcher, elements.rows, warp_threads / simt::warp_size, warp_threads);
  return plan;
}

}  // namespace trireme::device::cuda
