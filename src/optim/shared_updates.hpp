// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/newton_schulz.hpp"
#include "trireme/optim/state.hpp"

#include "gram_steps.hpp"

#include <optional>
#include <vector>

namespace trireme::optim {

/// Means of all updates of shared matrices.
struct SharingContext {
  const NewtonSchulz& rule;
  device::DType products;
  comm::ProcessGroup& group;  // of the ranks that share
  device::Kernels& kernels;
  device::Arena& workspace;  // lends memory for the scope that is open in it
};

/// Newton-Schulz of a matrix whose columns several ranks compute in Gram form, as one of them takes
/// part: each has a term of X X^T, one does the work on [n, n] matrices, and each multiplies its
/// columns by the result. Terms are added in the order of the shares.
class SharedUpdate {
 public:
  /// The means in `context`, and `sharing`, outlive it.
  SharedUpdate(const SharingContext& context, const ownership::MatrixShape& shape,
               const SharedMatrix& sharing);

  /// f32 [rows, columns]: what this rank holds of the matrix, to be filled before the first phase,
  /// and of its direction after the last.
  const device::Tensor& held() const { return held_; }
  bool is_done() const { return next_ == steps_.size(); }
  /// Starts the messages of the next phase.
  void start_phase();
  /// Waits for them, and uses what came.
  void finish_phase();

 private:
  enum class Phase {
    norm,     ///< sums of squares, to all: what is held is divided by the norm
    columns,  ///< what is held, to those that compute it: columns of the longer side
    terms,    ///< terms of X X^T, to the rank that adds them
    factor,   ///< of X, from that rank: X is multiplied by it
    held      ///< columns, back to those that hold them
  };
  struct Step {
    Phase phase{};
    std::size_t run = 0;  ///< of terms and factor
  };
  /// norm, columns, terms and factor of each run of the iteration, held.
  static std::vector<Step> steps_of(std::size_t runs);

  /// Elements that one rank holds and another computes, none where there are no such.
  struct Block {
    std::optional<layout::Box> box;
    device::Tensor values;  // [rows, columns]
  };
  /// Where a rank has elements: as it holds them, or in the slice that it computes.
  enum class Side { held, slice };
  Block block_of(const SharedMatrix::Share& holder, const SharedMatrix::Share& computing) const;
  std::vector<Block>& blocks(Side side) {
    return side == Side::held ? held_blocks_ : slice_blocks_;
  }
  device::Tensor place(Side side, const layout::Box& box) const;
  void start_exchange(Side from, Side to);
  void finish_exchange(Side to);

  void start_norm();
  void divide_by_norm();
  void transpose_tall(Side to);
  void start_terms(std::size_t run);
  void add_terms(std::size_t run);
  void start_factor(std::size_t run);
  void apply_factor(std::size_t run);

  const SharedMatrix::Share& own_share() const { return sharing_.shares[own_]; }
  bool is_own(int rank) const { return own_share().rank == rank; }
  bool is_tall() const { return shape_.rows > shape_.columns; }
  bool has_columns() const { return own_share().slice.size() > 0; }
  template <typename Act>
  void each_other(const Act& act) const;
  void send(const device::Tensor& x, int peer);
  void receive(const device::Tensor& x, int peer);

  SharingContext context_;
  const SharedMatrix& sharing_;
  ownership::MatrixShape shape_;
  std::size_t own_;  // index of the own share
  std::vector<StepRun> runs_;
  std::vector<Step> steps_;
  std::size_t next_ = 0;  // of the steps
  std::vector<comm::Work> under_way_;
  device::Tensor held_;
  device::Tensor x_;       // [1, n, own slice]; none where that is empty
  device::Tensor next_x_;  // [1, n, own slice]
  GramMemory memory_;
  /// i32 [shares, 2]: their sums of squares, as doubles.
  device::Tensor squares_;
  std::vector<Block> held_blocks_;   // [share]: what it computes of what is held here
  std::vector<Block> slice_blocks_;  // [share]: what it holds of the own slice
  /// [share]: its term of X X^T, none of one without columns; the own one is memory_.r.
  std::vector<device::Tensor> terms_;
};

/// Next phase of every matrix; false when all are done. Collective over the ranks of each: waits
/// for what they have to send in this phase.
bool run_phase(std::vector<SharedUpdate>& matrices);

}  // namespace trireme::optim
