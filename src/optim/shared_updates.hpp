// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/newton_schulz.hpp"
#include "trireme/optim/optimizer.hpp"

#include "gram_steps.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace trireme::optim {

/// Newton-Schulz of matrices whose columns several ranks compute in Gram form: each has a term of
/// X X^T, one does the work on [n, n] matrices, and each multiplies its columns by the result.
/// Terms are added in the order of the sharers.
class SharedUpdates {
 public:
  /// `group`: of the sharers. Memory is lent for the scope that is open in `workspace`.
  SharedUpdates(const NewtonSchulz& rule, device::DType products, comm::ProcessGroup& group,
                device::Kernels& kernels, device::Arena& workspace);

  /// `held`: f32, what the own sharer holds [rows, columns] of what is iterated, and then of its
  /// directions.
  void add(const ownership::MatrixShape& shape, const SharedMatrix& sharing,
           const device::Tensor& held);
  /// Next step of every matrix; false when all are done. Collective over the sharers of each:
  /// waits for what they have to send in this step.
  bool advance();

 private:
  /// Elements that one rank holds and another computes, none where there are no such.
  struct Block {
    std::optional<layout::Box> box;
    device::Tensor values;  // [rows, columns]
  };
  /// One matrix on this rank.
  struct Part {
    const SharedMatrix* sharing = nullptr;
    /// Index of the own sharer.
    std::size_t own = 0;
    ownership::MatrixShape shape{};
    device::Tensor held;
    device::Tensor x;     // [1, n, own slice]; none where that is empty
    device::Tensor next;  // [1, n, own slice]
    GramMemory memory;
    /// [sharer]: what it holds of the own slice, and what it computes of what is held here.
    std::vector<Block> received;
    std::vector<Block> sent;
    /// [sharer]: its term of X X^T, none of one without columns; the own one is memory.r.
    std::vector<device::Tensor> terms;
    /// i32 [sharers, 2]: their sums of squares, as doubles.
    device::Tensor squares;
    std::vector<StepRun> runs;
    std::vector<comm::Work> under_way;
    /// Steps done.
    std::size_t step = 0;

    std::size_t steps() const { return 2 * runs.size() + 3; }
    const SharedMatrix::Sharer& own_sharer() const { return sharing->sharers[own]; }
    bool is_tall() const { return shape.rows > shape.columns; }
    bool has_columns() const { return own_sharer().slice.size() > 0; }
    bool is_own(int rank) const { return own_sharer().rank == rank; }
    /// Place of elements in what is held, and in the own slice.
    device::Tensor in_held(const layout::Box& box) const;
    device::Tensor in_slice(const layout::Box& box) const;
  };

  Part part_of(const ownership::MatrixShape& shape, const SharedMatrix& sharing,
               const device::Tensor& held);
  void start(Part& part);
  void finish(Part& part);
  void start_norm(Part& part);
  void divide_by_norm(const Part& part);
  void start_columns(Part& part);
  void finish_columns(const Part& part);
  void start_held(Part& part);
  void finish_held(const Part& part);
  void start_terms(Part& part, std::size_t run);
  void add_terms(const Part& part, std::size_t run);
  void start_factor(Part& part, std::size_t run);
  void apply_factor(Part& part, std::size_t run);

  template <typename Act>
  static void each_other(const Part& part, const Act& act);
  void send(Part& part, const device::Tensor& x, int peer);
  void receive(Part& part, const device::Tensor& x, int peer);

  const NewtonSchulz& rule_;
  device::DType products_;
  comm::ProcessGroup& group_;
  device::Kernels& kernels_;
  device::Arena& workspace_;
  std::vector<Part> parts_;
};

}  // namespace trireme::optim
