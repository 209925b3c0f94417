// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/gemm/wide_gemm.hpp"

#include "device/cpu/runtime/parallel.hpp"
#include "device/cpu/simd/tables.hpp"
#include "device/wide_products.hpp"

#include <algorithm>
#include <atomic>

namespace trireme::device::cpu {
namespace {

/// Side of a tile, whole panels of every instruction set: small enough that threads share a matrix
/// of 256 rows, and long enough that packing takes little of the time.
constexpr std::int64_t side = 96;
/// Terms of a sum that are packed at a time: two panels lie in the first cache.
constexpr std::int64_t depth = 128;

/// Panels of `width` neighbours for each of the next terms; what a last one lacks is zero.
template <std::int64_t width, typename Element>
void pack(std::int64_t terms, std::int64_t count, const Element& element, double* to) {
  std::int64_t first = 0;
  for (; first + width <= count; first += width) {
    for (std::int64_t k = 0; k < terms; ++k, to += width) {
      for (std::int64_t i = 0; i < width; ++i) to[i] = element(k, first + i);
    }
  }
  if (first == count) return;
  for (std::int64_t k = 0; k < terms; ++k, to += width) {
    for (std::int64_t i = 0; i < width; ++i) {
      to[i] = first + i < count ? element(k, first + i) : 0.0;
    }
  }
}

/// Panels of the width that an instruction set has.
template <typename Element>
void pack(std::int64_t width, std::int64_t terms, std::int64_t count, const Element& element,
          double* to) {
  if (width == 4) return pack<4>(terms, count, element, to);
  if (width == 8) return pack<8>(terms, count, element, to);
  TRIREME_EXPECT(width == 16, "panels of 4, 8 or 16 doubles");
  pack<16>(terms, count, element, to);
}

}  // namespace

WideGemm::WideGemm(std::shared_ptr<Team> team, Isa isa)
    : team_(std::move(team)),
      panels_(tables_of(isa).wide_panels),
      threads_(static_cast<std::size_t>(team_->size())) {}

std::vector<WideGemm::Tile> WideGemm::tiles_of(std::int64_t rows, std::int64_t columns,
                                               bool lower) {
  std::vector<Tile> tiles;
  for (std::int64_t row = 0; row < rows; row += side) {
    for (std::int64_t column = 0; column < (lower ? row + 1 : columns); column += side) {
      tiles.push_back({row, column, std::min(side, rows - row), std::min(side, columns - column)});
    }
  }
  return tiles;
}

template <typename Left, typename Right, typename Finish>
void WideGemm::multiply(const std::vector<Tile>& tiles, std::int64_t inner, const Left& left,
                        const Right& right, const Finish& finish) {
  const auto threads = std::min(threads_.size(), tiles.size());
  if (threads == 0) return;
  // Allocating may fail, so it happens here and not where threads cannot throw.
  for (std::size_t index = 0; index < threads; ++index) {
    auto& thread = threads_[index];
    thread.left.resize(side * depth);
    thread.right.resize(side * depth);
    thread.sums.resize(side * side);
  }
  std::atomic<std::size_t> next{0};
  parallel(*team_, static_cast<int>(threads), [&](int index) {
    auto& memory = threads_[static_cast<std::size_t>(index)];
    for (auto number = next++; number < tiles.size(); number = next++) {
      const auto& tile = tiles[number];
      std::fill(memory.sums.begin(), memory.sums.end(), 0.0);
      for (std::int64_t first = 0; first < inner; first += depth) {
        const auto terms = std::min(depth, inner - first);
        pack(
            panels_.rows, terms, tile.rows,
            [&](auto k, auto i) { return left(first + k, tile.row + i); }, memory.left.data());
        pack(
            panels_.columns, terms, tile.columns,
            [&](auto k, auto j) { return right(first + k, tile.column + j); }, memory.right.data());
        for (std::int64_t j = 0; j < tile.columns; j += panels_.columns) {
          for (std::int64_t i = 0; i < tile.rows; i += panels_.rows) {
            panels_.multiply(memory.left.data() + i * terms, memory.right.data() + j * terms, terms,
                             memory.sums.data() + i * side + j, side);
          }
        }
      }
      finish(tile, memory.sums.data());
    }
  });
}

void WideGemm::run(const SymmetricRankUpdate& operation) {
  const auto n = operation.x.dim(1);
  const float* const x = operation.x.f32();
  float* const high = operation.sum.high.f32();
  float* const low = operation.sum.low.f32();
  const auto kept = static_cast<double>(operation.kept);
  const auto element = [x, n](std::int64_t k, std::int64_t i) {
    return static_cast<double>(x[k * n + i]);
  };
  multiply(tiles_of(n, n, true), operation.x.dim(0), element, element,
           [=](const Tile& tile, const double* sums) {
             for (std::int64_t r = 0; r < tile.rows; ++r) {
               const auto i = tile.row + r;
               const auto end = std::min(tile.columns, i + 1 - tile.column);
               for (std::int64_t c = 0; c < end; ++c) {
                 const auto j = tile.column + c;
                 const auto mixed =
                     kept * wide_at(high, low, i * n + j) + (1.0 - kept) * sums[r * side + c];
                 set_wide(high, low, i * n + j, mixed);
                 set_wide(high, low, j * n + i, mixed);
               }
             }
           });
}

void WideGemm::run(const WideProduct& operation) {
  const auto inner = operation.x.dim(1);
  const auto columns = operation.y.dim(1);
  const float* const x = operation.x.f32();
  const float* const high = operation.s.high.f32();
  const float* const low = operation.s.low.f32();
  float* const y = operation.y.f32();
  multiply(
      tiles_of(operation.y.dim(0), columns, false), inner,
      [x, inner](std::int64_t k, std::int64_t i) { return static_cast<double>(x[i * inner + k]); },
      [=](std::int64_t k, std::int64_t j) { return wide_at(high, low, k * columns + j); },
      [=](const Tile& tile, const double* sums) {
        for (std::int64_t r = 0; r < tile.rows; ++r) {
          auto* const line = y + (tile.row + r) * columns + tile.column;
          for (std::int64_t c = 0; c < tile.columns; ++c) {
            line[c] = static_cast<float>(sums[r * side + c]);
          }
        }
      });
}

}  // namespace trireme::device::cpu
