// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/layout/matrix_cost.hpp"
#include "trireme/optim/optimizer.hpp"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trireme::optim {

/// Rule that updates a matrix as a whole, in three parts: what is done element by element before
/// (`take`), with whole matrices (`directions`) and element by element again, which is the same for
/// every rule: W <- (1 - rate decay) W - rate factor(W) D.
class MatrixRule {
 public:
  virtual ~MatrixRule() = default;

  /// State of a matrix, f32 of its shape each: "muon.momentum".
  virtual std::vector<std::string> state_names() const = 0;
  /// Counted floating-point operations of directions() for one matrix of this shape.
  virtual double flops(const layout::MatrixShape& shape) const = 0;

  /// Updates the states of a matrix, or of a part of one, by its gradient, and writes what
  /// directions() begins from. All are f32 and as long.
  virtual void take(device::Kernels& kernels, const device::Tensor& gradient, float gradient_scale,
                    std::span<const device::Tensor> states, const device::Tensor& to) const = 0;
  /// Directions of whole matrices of one shape, in place of what take() wrote: f32 [count, rows,
  /// columns]. The numbers of a matrix do not depend on the others of its batch.
  virtual void directions(device::Kernels& kernels, device::Arena& workspace,
                          const device::Tensor& matrices) const = 0;
  /// Factor on the direction of a matrix [out, in], whatever part of it a rank holds.
  virtual float factor(const layout::MatrixShape& shape) const = 0;
};

/// Matrices of one shape of which each of several ranks holds a part, on their way to their owners
/// and back. All tensors are f32.
struct MicroGroup {
  /// [rank]: what it holds of each matrix.
  std::span<const layout::Box> boxes;
  device::Tensor parts;     // [ranks, slots, largest part]: this rank's parts, by owner
  device::Tensor received;  // [ranks, slots, largest part]: all parts of the matrices owned here
  device::Tensor whole;     // [slots, rows, columns]: the matrices owned here
  /// So many of the slots are in use here.
  std::int64_t owned = 0;
};

/// Way between parts of matrices and their owners.
class PartExchange {
 public:
  virtual ~PartExchange() = default;
  virtual int ranks() const = 0;
  virtual int rank() const = 0;
  /// Collective over the ranks. `whole` becomes the matrices whose `parts` the ranks hold.
  virtual void gather(device::Kernels& kernels, const MicroGroup& group) = 0;
  /// Collective over the ranks. `parts` become those of the owners' `whole`.
  virtual void scatter(device::Kernels& kernels, const MicroGroup& group) = 0;
};

/// The rule for matrices; null where all parameters are updated element by element. `products`:
/// type of what is multiplied.
std::unique_ptr<MatrixRule> make_matrix_rule(const Rule& rule, device::DType products);

/// Momentum, orthogonalised by Newton-Schulz iterations (Jordan et al. 2024).
std::unique_ptr<MatrixRule> make_muon(const MuonRule& rule, device::DType products);

}  // namespace trireme::optim
