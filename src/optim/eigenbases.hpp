// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <cstdint>
#include <optional>
#include <span>

namespace trireme::optim {

/// Factors of a matrix's sides and their eigenvectors, as SOAP keeps them: bases that a gradient is
/// turned to. A side longer than max_side keeps the basis of the parameters.
class Eigenbases {
 public:
  /// For matrices of one shape. Memory is lent for the scope that is open in `workspace`.
  Eigenbases(device::Kernels& kernels, device::Arena& workspace,
             const ownership::MatrixShape& shape, std::int64_t max_side);

  /// Goes on with the factors and bases of another matrix: by side, f32 [side, side] each, a factor
  /// as two tensors and a basis, whose rows are the vectors.
  void use(std::span<const device::Tensor> states);

  /// y = Q_L^T x Q_R for bases Q.
  void rotate_to(const device::Tensor& x, const device::Tensor& y) { rotate(Way::to, x, y); }
  /// y = Q_L x Q_R^T.
  void rotate_back(const device::Tensor& x, const device::Tensor& y) { rotate(Way::back, x, y); }
  /// factor = beta * factor + (1 - beta) * products of the gradient.
  void update_factors(const device::Tensor& gradient, float beta);
  /// Bases begin as the eigenvectors of the factors.
  void begin();
  /// Renews them, and gives `moment`, which lies in them, their order. `scratch` is as large.
  void refresh(const device::Tensor& moment, const device::Tensor& scratch);

 private:
  enum class Way { to, back };
  /// In fp32 vectors of small eigenvalues would be those of rounding, others on each layout, and
  /// Adam gives them steps as long as any.
  struct Side {
    device::WideMatrix factor;
    device::Tensor basis;
  };

  void rotate(Way way, const device::Tensor& x, const device::Tensor& y);
  void begin(const Side& side);
  void refresh(const Side& side);
  void take_rows(const device::Tensor& x, const device::Tensor& order, const device::Tensor& y);
  void orthonormalise(const device::Tensor& x);

  device::Kernels& kernels_;
  ownership::MatrixShape shape_;
  std::int64_t max_side_;
  std::int64_t largest_;  // of the sides with a basis
  std::optional<Side> left_;
  std::optional<Side> right_;
  /// Temporaries: f32 [rows * columns], f32 [largest * largest], f32 and i32 [largest].
  device::Tensor matrix_;
  device::Tensor square_;
  device::Tensor values_;
  device::Tensor order_;
  device::DecompositionWorkspace decomposition_;
  /// Nothing is computed: there are no numbers for the host.
  bool measures_;
};

}  // namespace trireme::optim
