// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations/wide_products.hpp"

#include "device/cpu/runtime/isa.hpp"
#include "device/cpu/runtime/team.hpp"
#include "device/cpu/simd/wide_panels.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace trireme::device::cpu {

/// Products of f32 with sums in fp64, which oneDNN does not compute on CPUs; threads would not be
/// safe in the OpenBLAS that stands behind LAPACK. Results are cut into tiles by their shape alone,
/// of which threads take one after the other.
class WideGemm {
 public:
  WideGemm(std::shared_ptr<Team> team, Isa isa);

  void run(const SymmetricRankUpdate& operation);
  void run(const WideProduct& operation);

 private:
  /// Memory of a thread: operands of a tile as panels of doubles, and its sums.
  struct Thread {
    std::vector<double> left;
    std::vector<double> right;
    std::vector<double> sums;
  };
  /// Tile [rows, columns] at (row, column) of the result.
  struct Tile {
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };

  /// finish(tile, sums, stride) for each tile of the sum over k < inner of left(k, i) * right(k,
  /// j), with i and j from the result's first row and column on.
  template <typename Left, typename Right, typename Finish>
  void multiply(const std::vector<Tile>& tiles, std::int64_t inner, const Left& left,
                const Right& right, const Finish& finish);
  static std::vector<Tile> tiles_of(std::int64_t rows, std::int64_t columns, bool lower);

  std::shared_ptr<Team> team_;
  WidePanelTable panels_;
  std::vector<Thread> threads_;
};

}  // namespace trireme::device::cpu
