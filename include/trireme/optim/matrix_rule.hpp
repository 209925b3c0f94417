// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/rule.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace trireme::optim {

/// State of a matrix that has a shape of its own and lies whole at the matrix's owner.
struct OwnerState {
  std::string name;  ///< "shampoo.left"
  ownership::MatrixShape shape{};
};

/// Whole matrices of one shape at their owner.
struct MatrixBatch {
  /// f32 [count, rows, columns]: what prepare() wrote, and then directions.
  device::Tensor matrices;
  /// [matrix][state of owner_states() but the last]: f32, of its shape. Empty for a rule without
  /// such states.
  std::vector<std::vector<device::Tensor>> states;
  /// [matrix]: updates that its states have had, and the turn of its renewals (see
  /// MatrixRule::renewal).
  std::vector<std::int64_t> updates;
  std::vector<std::int64_t> turns;
};

/// Rule that updates a matrix as a whole, in three parts: what is done element by element before
/// (`prepare`), with whole matrices (`compute`) and element by element again, which is the same for
/// every rule: W <- (1 - rate decay) W - rate factor(W) D. All state begins at zero.
class MatrixRule {
 public:
  virtual ~MatrixRule() = default;

  /// State that lies where the parts of a matrix do, f32 of its shape each: "muon.momentum".
  virtual std::vector<std::string> state_names() const { return {}; }
  /// State that lies at the owner of a matrix of this shape. The last of it is [1, 1]: the number
  /// of updates that the others have had, which the optimizer counts.
  virtual std::vector<OwnerState> owner_states(const ownership::MatrixShape&) const { return {}; }
  /// Counted floating-point operations of compute() for one matrix of this shape, in the mean over
  /// many updates.
  virtual double flops(const ownership::MatrixShape& shape) const = 0;
  /// The part of them that comes once in several updates; its turn is each matrix's own.
  virtual ownership::Renewal renewal(const ownership::MatrixShape&) const { return {}; }
  /// The same for a matrix that several ranks share; not possible() for a rule that needs one
  /// owner.
  virtual ownership::SplitCost split(const ownership::MatrixShape&) const { return {}; }
  /// The iteration that gives directions, of a rule whose matrices can be shared; or null.
  virtual const NewtonSchulz* iteration() const { return nullptr; }

  /// Updates the states of a matrix, or of a part of one, by its gradient, and writes what
  /// compute() begins from: the scaled gradient, unless a rule says otherwise. All are f32 and
  /// as long.
  virtual void prepare(device::Kernels& kernels, const device::Tensor& gradient,
                       float gradient_scale, std::span<const device::Tensor> states,
                       const device::Tensor& to) const;
  /// Directions of whole matrices, in place of what prepare() wrote. The numbers of a matrix do not
  /// depend on the others of its batch.
  virtual void compute(device::Kernels& kernels, device::Arena& workspace,
                       const MatrixBatch& batch) const = 0;
  /// Factor on the direction of a matrix [out, in], whatever part of it a rank holds.
  virtual float factor(const ownership::MatrixShape&) const { return 1.0F; }
};

/// The rule for matrices; null where all parameters are updated element by element. `products`:
/// type of what is multiplied.
std::unique_ptr<MatrixRule> make_matrix_rule(const Rule& rule, device::DType products);

/// Momentum, orthogonalised by Newton-Schulz iterations (Jordan et al. 2024).
std::unique_ptr<MatrixRule> make_muon(const MuonRule& rule, device::DType products);

/// L^(-1/4) M R^(-1/4) with the length of Adam's direction (Gupta et al. 2018, arXiv 1802.09568;
/// Shi et al. 2023, arXiv 2309.06497, with Adam's first moment M and grafting). L <- beta2 L + (1 -
/// beta2) G G^T, R <- beta2 R + (1 - beta2) G^T G; roots are taken at the first update, and then in
/// each matrix's turn once in root_every updates. Sides above max_side are cut into equal blocks of
/// the largest divisor.
std::unique_ptr<MatrixRule> make_shampoo(const Rule& rule);

/// Adam in the eigenvectors of Shampoo's L and R (Vyas et al. 2024, arXiv 2409.11321): the first
/// moment in the basis of the parameters, the second in that of the eigenvectors, which one power
/// iteration and a QR decomposition renew in the matrix's turn of root_every updates. The first
/// update begins the state and has no direction; what its gradient does not reach gets the nearest
/// unit vectors. Sides above max_side keep the basis of the parameters.
std::unique_ptr<MatrixRule> make_soap(const Rule& rule);

}  // namespace trireme::optim
