// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/operations.hpp"

#include "device/cpu/gemm/block_gemm.hpp"
#include "device/cpu/runtime/isa.hpp"
#include "device/cpu/runtime/team.hpp"
#include "device/cpu/simd/arithmetic.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace trireme::device::cpu {

/// Products of batches of matrices. Results are cut into tiles by their shape alone, and threads
/// take tiles of all matrices in turn: bits depend neither on the threads nor on the batch. A tile
/// is summed in fp32 in memory of its thread; scales and terms are added where it is still in the
/// cache.
class MatrixGemm {
 public:
  MatrixGemm(std::shared_ptr<Team> team, Isa isa);

  void run(const SymmetricProduct& product);
  void run(const AddProduct& product);

 private:
  struct Thread {
    BlockGemm gemm;
    std::vector<float> tile;
  };
  /// Tile [rows, columns] at (row, column) of the result of matrix `matrix`.
  struct Tile {
    std::int64_t matrix = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };
  /// Address of the operands of a tile, and what is done with its sums [rows, columns].
  using OperandsOf = std::function<BlockOperands(const Tile&)>;
  using Finish = std::function<void(const Tile&, const float* sums)>;

  /// `shape` is the descriptor of any tile but for its size.
  void multiply(const BlockDescriptor& shape, const std::vector<Tile>& tiles,
                const OperandsOf& operands_of, const Finish& finish);

  std::shared_ptr<Team> team_;
  const ArithmeticTable& arithmetic_;
  std::vector<Thread> threads_;
};

}  // namespace trireme::device::cpu
